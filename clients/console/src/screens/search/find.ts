// Where in the console something is: found by words, by its id, or by its place in the log.
import { api, asked } from '$lib/api/client';
import type { components } from '$lib/api/openapi';
import { ProblemError } from '$lib/api/problem';
import { kindOf, ownerOf, text, type Event } from '$lib/api/types';
import { router } from '$lib/router/router.svelte';
import { pieces, wanted } from './words';

export type Kind = components['schemas']['HitRow']['kind'] | 'turn' | 'action' | 'place' | 'agent' | 'screen';

export interface Target {
  key: string;
  kind: Kind;
  title: string;
  /** The agent, the state and so on. */
  aside: string;
  href: string;
}

export type Hit = components['schemas']['HitRow'];

/** What there is of this; nothing where there is nothing. */
export async function find(words: string, limit: number): Promise<Target[]> {
  const { kind, text } = wanted(words);
  if (text === '') return [];
  if (kind === 'sequence') return atPlace(Number(text));
  if (kind === 'id') return (await Promise.all([turn(text), action(text), thread(text)])).flat();
  const { hits } = await asked(api.GET('/v1/search', { params: { query: { q: text, limit } } }));
  return hits.map(targetOf);
}

/** Where a hit can be looked at. */
export function targetOf({ kind, id, agent, title, snippet, status, thread_id }: Hit): Target {
  const told = title || pieces(snippet).map(({ text }) => text).join('');
  const thread = kind === 'thread' ? id : (thread_id ?? '');
  const href = kind === 'state' ? router.href('/replay/{agent?}', { agent }) : router.href('/river', {}, { agent, thread });
  return { key: `${kind} ${agent} ${id}`, kind, title: told, aside: [agent, status ?? ''].filter((part) => part !== '').join(' · '), href };
}

async function atPlace(sequence: number): Promise<Target[]> {
  const { events } = await asked(api.GET('/v1/events', { params: { query: { after: String(sequence - 1), limit: 1 } } }));
  const event = (events as Event[]).find((event) => event.sequence === sequence);
  if (!event) return [];
  const title = `${kindOf(event)} ${text(event)}`;
  const owner = ownerOf(event);
  const found = [turnOf(event.correlation_id, title, owner)];
  // Of users and services there is no state.
  if (!/^kairo\.(user|system)\./.test(event.subject)) {
    const href = router.href('/replay/{agent?}', { agent: owner }, { at: String(sequence) });
    found.push({ key: `place ${sequence}`, kind: 'place', title, aside: `${owner} · ${sequence}`, href });
  }
  return found;
}

async function turn(id: string): Promise<Target[]> {
  const { events } = await asked(api.GET('/v1/events', { params: { query: { correlation: id, limit: 1 } } }));
  const first = events[0] as Event | undefined;
  return first ? [turnOf(id, text(first) || kindOf(first), ownerOf(first))] : [];
}

async function action(action_id: string): Promise<Target[]> {
  const found = await known(asked(api.GET('/v1/actions/{action_id}', { params: { path: { action_id } } })));
  if (!found) return [];
  const { tool, agent, status, correlation_id } = found.action;
  const href = router.href('/graph/{turn?}', { turn: correlation_id });
  return [{ key: `action ${action_id}`, kind: 'action', title: tool, aside: `${agent} · ${status}`, href }];
}

async function thread(thread_id: string): Promise<Target[]> {
  const found = await known(asked(api.GET('/v1/threads/{thread_id}', { params: { path: { thread_id } } })));
  if (!found) return [];
  const { title, agent, status } = found.thread;
  const href = router.href('/river', {}, { agent, thread: thread_id });
  return [{ key: `thread ${thread_id}`, kind: 'thread', title: title ?? thread_id, aside: `${agent} · ${status}`, href }];
}

function turnOf(id: string, title: string, owner: string): Target {
  return { key: `turn ${id}`, kind: 'turn', title, aside: owner, href: router.href('/graph/{turn?}', { turn: id }) };
}

/** An id of another kind is no error. */
async function known<T>(request: Promise<T>): Promise<T | null> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof ProblemError && error.status === 404) return null;
    throw error;
  }
}
