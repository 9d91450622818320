// Text of others, as it can be shown without deceiving anybody: characters that steer terminals or turn the direction of what
// follows are named instead. Pure. That nothing of it runs is the page's policy and the templates', which write text alone.

export interface Piece {
  text: string;
  /** Stands for a character that would not be seen. */
  named: boolean;
}

/** Controls but for tab and line break, what turns direction, what is invisible, and lone surrogates. */
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\p{Surrogate}/gu;

/** The text in pieces that can be shown. */
export function visible(text: string): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const found of text.matchAll(UNSEEN)) {
    // As Windows ends lines.
    if (found[0] === '\r' && text[found.index + 1] === '\n') {
      plain(pieces, text.slice(from, found.index));
    } else {
      plain(pieces, text.slice(from, found.index));
      pieces.push({ text: name(found[0]), named: true });
    }
    from = found.index + found[0].length;
  }
  plain(pieces, text.slice(from));
  return pieces;
}

/** In one line, as a plain text: for lists, titles and labels. */
export function line(text: string, longest = 300): string {
  const cut = head(text, longest);
  const shown = visible(cut.replace(/\s+/g, ' ').trim());
  const told = shown.map(({ text, named }) => (named ? `⟨${text}⟩` : text)).join('');
  return cut.length < text.length ? `${told}…` : told;
}

/** The beginning of a text, without half a character at its end. */
export function head(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? length - 1 : length);
}

function plain(pieces: Piece[], text: string) {
  if (text !== '') pieces.push({ text, named: false });
}

function name(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  // The pictures of ASCII's controls.
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}
