// How long calls take, how a stop went, and what a process writes. Pure.
import type { ActionRow, Event, Output, ProcessRow } from '$lib/api/types';
import { text } from '$lib/api/types';

export interface Usual {
  /** Milliseconds within which 95 of 100 finished. */
  p95: number;
  /** Of so many. */
  count: number;
}

/** By tool, of calls that were done: the smallest duration that at least 95 of 100 do not exceed. */
export function usual(done: readonly ActionRow[]): Map<string, Usual> {
  const durations = new Map<string, number[]>();
  for (const { tool, status, duration_ms } of done) {
    if (status !== 'done' || duration_ms === null) continue;
    durations.set(tool, [...(durations.get(tool) ?? []), duration_ms]);
  }
  const of = (all: number[]): Usual => {
    const sorted = all.sort((one, other) => one - other);
    return { p95: sorted[Math.ceil(sorted.length * 0.95) - 1] ?? 0, count: sorted.length };
  };
  return new Map([...durations].map(([tool, all]) => [tool, of(all)]));
}

/** How a stop went, or that none was asked for. */
export type Stop = 'none' | 'asked' | 'never' | 'stopped' | 'over' | 'doubt';

export function stopOf(row: ActionRow, neverBegun: boolean, ordered: boolean): Stop {
  const wanted = ordered || row.cancel_requested_at !== null;
  if (row.ended_at === null) return wanted ? 'asked' : 'none';
  if (row.status === 'canceled') return neverBegun ? 'never' : 'stopped';
  if (!wanted) return 'none';
  return row.status === 'in_doubt' ? 'doubt' : 'over';
}

export function stopOfProcess(row: ProcessRow, ordered: boolean): Stop {
  const wanted = ordered || row.cancel_requested_at !== null;
  if (row.ended_at === null) return wanted ? 'asked' : 'none';
  if (row.outcome === 'canceled') return row.started_at === null ? 'never' : 'stopped';
  return wanted ? 'over' : 'none';
}

/** Whether nobody began an action, since it was canceled before: so its invocation says. */
export function isNeverBegun(events: readonly Event[], action: string): boolean {
  const isIts = (event: Event) => event.type === 'kairo.tool.invoke.v1' && text(event, 'action_id') === action;
  return events.some((event) => isIts(event) && text(event, 'executor') === 'nobody');
}

export interface Piece {
  stream: 'stdout' | 'stderr';
  text: string;
  /** Pieces that are missing before this one. */
  missing: number;
}

/** Characters that are kept of what a process writes. */
export const MOST_KEPT = 200_000;

/** What a process writes, as it comes: each piece once, and where pieces are missing, so many. */
export class Written {
  pieces: Piece[] = [];
  /** Characters at the beginning that are no longer kept. */
  cut = 0;
  #next = 0;
  #kept = 0;

  take({ stream, text, sequence }: Output) {
    const at = Number(sequence ?? 0);
    if (at < this.#next) return;
    const missing = at - this.#next;
    this.#next = at + 1;
    this.#kept += text.length;
    const last = this.pieces.at(-1);
    if (missing === 0 && last?.stream === stream) this.pieces[this.pieces.length - 1] = { ...last, text: last.text + text };
    else this.pieces.push({ stream, text, missing });
    while (this.#kept > MOST_KEPT) this.#fold();
  }

  #fold() {
    const [first] = this.pieces;
    if (!first) return;
    const gone = Math.min(first.text.length, this.#kept - MOST_KEPT);
    this.cut += gone;
    this.#kept -= gone;
    if (gone === first.text.length) this.pieces.shift();
    else this.pieces[0] = { ...first, text: first.text.slice(gone) };
  }
}

/** Bytes that were written and are not in the tail. */
export function unseen(tail: string | null, bytes: number | null): number {
  return Math.max(0, (bytes ?? 0) - new TextEncoder().encode(tail ?? '').length);
}
