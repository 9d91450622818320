// Memories and inner state as the gateway has them.
import { api, asked } from '$lib/api/client';
import type { Event } from '$lib/api/types';
import { atLeast, kinds, Query } from '$lib/query.svelte';
import type { paths } from '$lib/api/openapi';

export type Type = NonNullable<NonNullable<paths['/v1/memories']['get']['parameters']['query']>['type']>;
export const TYPES: readonly Type[] = ['any', 'journal', 'person', 'project', 'preference', 'decision', 'insight', 'fact', 'state', 'secret'];

const LISTED = 200;
const concerns = kinds('memory.', 'state.', 'user.forgotten');

export interface Filter {
  agent: string;
  type: Type;
  words: string;
}

export function listed({ agent, type, words }: Filter) {
  const wish = agent === '' ? {} : { agent };
  const query = { ...wish, type, ...(words !== '' && { q: words }), limit: LISTED };
  const ask = (sequence?: number) => asked(api.GET('/v1/memories', { params: { query: { ...query, ...atLeast(sequence) } } }));
  return new Query(ask, { wish, concerns });
}

export function one(agent: string, memory_id: string) {
  const path = { agent, memory_id };
  const ask = (sequence?: number) => asked(api.GET('/v1/memories/{agent}/{memory_id}', { params: { path, query: atLeast(sequence) } }));
  return new Query(ask, { wish: { agent }, concerns });
}

export function state(agent: string) {
  const ask = (sequence?: number) =>
    asked(api.GET('/v1/agents/{agent}/inner-state', { params: { path: { agent }, query: { limit: LISTED, ...atLeast(sequence) } } }));
  return new Query(ask, { wish: { agent }, concerns });
}

/** All that was written under a key, and when it was deleted: the newest first. */
export function history(agent: string, key: string) {
  const query = { key, limit: LISTED };
  const ask = (sequence?: number) =>
    asked(api.GET('/v1/agents/{agent}/inner-state/history', { params: { path: { agent }, query: { ...query, ...atLeast(sequence) } } }));
  return new Query(ask, { wish: { agent }, concerns });
}

/** Events of a thread that are looked through for what a memory was made from: the newest. */
const OF_THREAD = 1000;

/** Those of the events that are among the newest of the thread, in their order. */
export async function found(agent: string, thread: string, ids: readonly string[]): Promise<Event[]> {
  const { events } = await asked(api.GET('/v1/events', { params: { query: { agent, thread, latest: OF_THREAD } } }));
  return (events as Event[]).filter(({ event_id }) => ids.includes(event_id));
}
