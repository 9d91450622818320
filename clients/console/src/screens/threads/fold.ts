// What happened in a thread, sorted for people. Pure.
import type { ChainStepRow, ThreadEventRow } from '$lib/api/types';

/** Steps of one group run at once; groups run one after another. */
export function groups(steps: readonly ChainStepRow[]): ChainStepRow[][] {
  const found = new Map<number, ChainStepRow[]>();
  for (const step of steps) found.set(step.group, [...(found.get(step.group) ?? []), step]);
  return [...found].sort(([one], [other]) => one - other).map(([, of]) => of);
}

/** The fields that are others than they were written: their references were filled in. */
export function filledIn(written: unknown, filled: unknown): string[] {
  if (!isObject(written) || !isObject(filled)) return [];
  const names = new Set([...Object.keys(written), ...Object.keys(filled)]);
  return [...names].filter((name) => JSON.stringify(written[name]) !== JSON.stringify(filled[name]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export interface Sorted {
  /** Where what was oldest was summed up, and what the thread is about by then. */
  compactions: ThreadEventRow[];
  /** What was put down to be remembered. */
  knowledge: ThreadEventRow[];
}

export function sorted(events: readonly ThreadEventRow[]): Sorted {
  return {
    compactions: events.filter(({ event }) => event === 'thread.compacted' || event === 'thread.compact'),
    knowledge: events.filter(({ event, result }) => event.startsWith('memory.') && field(result, 'memory_id') !== ''),
  };
}

/** A field of what an event says, as text; empty where it has none. */
export function field(value: unknown, name: string): string {
  if (!isObject(value)) return '';
  const found = value[name];
  if (typeof found === 'string') return found;
  return found === undefined || found === null ? '' : JSON.stringify(found);
}

/** What an event says, in words. */
export function told({ result }: ThreadEventRow): string {
  if (typeof result === 'string') return result;
  return field(result, 'text') || field(result, 'message') || field(result, 'content');
}
