// What somebody looks for, and what was found, as text. Pure.

export type Wanted = { kind: 'words' | 'id' | 'sequence'; text: string };

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Words, an id, or a place in the log: `42`, or `42.1` as the river shows it. */
export function wanted(text: string): Wanted {
  const trimmed = text.trim();
  if (ID.test(trimmed)) return { kind: 'id', text: trimmed.toLowerCase() };
  const place = /^#?(\d{1,15})(\.\d+)?$/.exec(trimmed);
  return place ? { kind: 'sequence', text: place[1]! } : { kind: 'words', text: trimmed };
}

export interface Piece {
  text: string;
  found: boolean;
}

const ENTITIES: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&#x27;': "'", '&#x2F;': '/', '&amp;': '&' };

/** A snippet is HTML with what was found in `<mark>`: here it becomes text, so nothing of it is ever read as HTML. */
export function pieces(snippet: string): Piece[] {
  const parts: Piece[] = [];
  let found = false;
  for (const part of snippet.split(/(<\/?mark>)/)) {
    if (part === '<mark>') found = true;
    else if (part === '</mark>') found = false;
    else if (part !== '') parts.push({ text: part.replace(/&(?:lt|gt|quot|#39|#x27|#x2F|amp);/g, (entity) => ENTITIES[entity] ?? entity), found });
  }
  return parts;
}

/** Whether all of the words occur, in any order; for what is found without asking anybody. */
export function fits(text: string, words: string): boolean {
  const held = text.toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => held.includes(word));
}
