// Threads as the gateway has them.
import { api, asked } from '$lib/api/client';
import { message } from '$lib/api/problem';
import { atLeast, kinds, Query } from '$lib/query.svelte';
import { session } from '$lib/session.svelte';

export const SHOWS = ['open', 'active', 'compacted', 'completed', 'archived', 'all'] as const;
export type Show = (typeof SHOWS)[number];

/** Threads that are listed, and events of one that are shown: the newest. */
const LISTED = 200;
export const EVENTS = 200;

export function listed(show: Show, agent: string) {
  const wish = agent === '' ? {} : { agent };
  const query = { ...wish, status: show, limit: LISTED };
  const ask = (sequence?: number) => asked(api.GET('/v1/threads', { params: { query: { ...query, ...atLeast(sequence) } } }));
  return new Query(ask, { wish, concerns: kinds('thread.', 'user.message', 'agent.', 'task.started') });
}

export function one(agent: string, thread_id: string) {
  const query = { agent, limit: EVENTS };
  const ask = (sequence?: number) =>
    asked(api.GET('/v1/threads/{thread_id}', { params: { path: { thread_id }, query: { ...query, ...atLeast(sequence) } } }));
  return new Query(ask, { wish: { agent }, concerns: kinds('thread.', 'chain.', 'agent.', 'tool.', 'memory.', 'task.', 'process.exited') });
}

/** Has a chain stopped; says why that was not accepted. */
export async function stop(agent: string, chain_id: string): Promise<string> {
  try {
    await asked(api.POST('/v1/commands', { body: { user: session.user, agent, command: 'cancel', chain_id } }));
    return '';
  } catch (error) {
    return message(error);
  }
}
