// Tasks as the gateway has them, and what one can order about them.
import { api, asked } from '$lib/api/client';
import { message } from '$lib/api/problem';
import { ownerOf } from '$lib/api/types';
import { atLeast, kinds, Query } from '$lib/query.svelte';
import { session } from '$lib/session.svelte';

export const SHOWS = ['open', 'queue', 'scheduled', 'hook', 'queued', 'all'] as const;
export type Show = (typeof SHOWS)[number];

const LISTED = 200;
const concerns = kinds('task.', 'chain.', 'agent.command');
const NARROWED = {
  open: { status: 'open' },
  queue: { queue: true },
  scheduled: { kind: 'scheduled' },
  hook: { kind: 'hook' },
  queued: { kind: 'queued' },
  all: {},
} as const satisfies Record<Show, object>;

export function listed(show: Show, agent: string) {
  const wish = agent === '' ? {} : { agent };
  const query = { ...wish, ...NARROWED[show], limit: LISTED };
  const ask = (sequence?: number) => asked(api.GET('/v1/tasks', { params: { query: { ...query, ...atLeast(sequence) } } }));
  return new Query(ask, { wish, concerns });
}

export function one(task_id: string) {
  const ask = (sequence?: number) => asked(api.GET('/v1/tasks/{task_id}', { params: { path: { task_id }, query: atLeast(sequence) } }));
  return new Query(ask, { concerns: (event, { task }) => concerns(event) && ownerOf(event) === task.agent });
}

export type Command = 'cancel' | 'pause' | 'resume' | 'run';

/** Has a task canceled, paused, resumed or run; says why that was not accepted. */
export async function order(agent: string, task_id: string, command: Command): Promise<string> {
  try {
    await asked(api.POST('/v1/commands', { body: { user: session.user, agent, command, task_id } }));
    return '';
  } catch (error) {
    return message(error);
  }
}
