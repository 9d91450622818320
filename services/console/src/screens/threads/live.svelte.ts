// Threads as the gateway has them.
import { api, asked } from '$lib/api/client';
import { message } from '$lib/api/problem';
import { Watched } from '$lib/api/watched.svelte';
import { session } from '$lib/session.svelte';

export const SHOWS = ['open', 'active', 'compacted', 'completed', 'archived', 'all'] as const;
export type Show = (typeof SHOWS)[number];

/** Threads that are listed, and events of one that are shown: the newest. */
const LISTED = 200;
export const EVENTS = 200;
const place = (at_least?: number) => (at_least === undefined ? {} : { at_least });

export function listed(show: Show, agent: string) {
  const wish = agent === '' ? {} : { agent };
  return new Watched({
    kinds: ['thread.', 'user.message', 'agent.', 'task.started'],
    wish,
    ask: (atLeast) => asked(api.GET('/v1/threads', { params: { query: { ...wish, status: show, limit: LISTED, ...place(atLeast) } } })),
  });
}

export function one(agent: string, thread_id: string) {
  return new Watched({
    kinds: ['thread.', 'chain.', 'agent.', 'tool.', 'memory.', 'task.', 'process.exited'],
    wish: { agent },
    ask: (atLeast) => asked(api.GET('/v1/threads/{thread_id}', { params: { path: { thread_id }, query: { agent, limit: EVENTS, ...place(atLeast) } } })),
  });
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
