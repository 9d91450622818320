// What of the log is shown. Pure.
import { kindOf, ownerOf, type Event } from '$lib/api/types';
import type { Test } from '$lib/events/feed';

/** What kind of thing an event is, for its colour. */
export type Tone = 'user' | 'says' | 'thinks' | 'asks' | 'tool' | 'process' | 'task' | 'system' | 'bad';

export function toneOf(event: Event): Tone {
  const kind = kindOf(event);
  const [noun = ''] = kind.split('.');
  if (kind.endsWith('failed') || kind.endsWith('undelivered') || noun === 'dlq' || event.payload['ok'] === false) return 'bad';
  if (noun === 'user') return 'user';
  if (kind === 'agent.message') return 'user';
  if (kind === 'agent.action') return event.payload['type'] === 'say' ? 'says' : 'asks';
  if (noun === 'agent' || noun === 'memory' || noun === 'state') return 'thinks';
  if (noun === 'tool') return 'tool';
  if (noun === 'process') return 'process';
  if (noun === 'task' || noun === 'chain' || noun === 'thread' || noun === 'email') return 'task';
  return 'system';
}

/** Passes events whose kind begins with one of these, that hold this text, and that are of one of these, where some are named. */
export function test(kinds: string, text: string, owners: ReadonlySet<string> | null = null): Test {
  const wanted = kinds.split(/[\s,]+/).filter((kind) => kind !== '');
  const held = text.trim().toLowerCase();
  return (event) => {
    if (owners && !owners.has(ownerOf(event))) return false;
    const kind = kindOf(event);
    if (wanted.length > 0 && !wanted.some((begin) => kind.startsWith(begin))) return false;
    return held === '' || said(event).toLowerCase().includes(held) || kind.includes(held) || ownerOf(event).includes(held);
  };
}

/** What an event says to people. */
export function said(event: Event): string {
  const { text } = event.payload;
  return typeof text === 'string' ? text : '';
}
