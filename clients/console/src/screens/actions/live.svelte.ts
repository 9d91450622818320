// Actions and processes as the gateway has them, what a process writes as it comes, and what one can do about them.
import { api, asked } from '$lib/api/client';
import { message } from '$lib/api/problem';
import { follow } from '$lib/api/stream';
import { ownerOf, type Event } from '$lib/api/types';
import { eachFrame } from '$lib/frames';
import { atLeast, kinds, Query } from '$lib/query.svelte';
import { session } from '$lib/session.svelte';
import { isNeverBegun, usual, Written } from './measure';

export const SHOWS = ['open', 'in_doubt', 'done', 'failed', 'all', 'processes'] as const;
export type Show = (typeof SHOWS)[number];

const concerns = kinds('agent.action', 'agent.approval', 'tool.', 'process.');
/** Rows that are listed, and done calls that are compared with. */
const LISTED = 200;
const COMPARED = 1000;
/** Events of a turn that are looked through for how an action was begun. */
const OF_TURN = 1000;


export function listed(show: Show, agent: string) {
  const wish = agent === '' ? {} : { agent };
  const query = { ...wish, limit: LISTED };
  const ask = async (sequence?: number) => {
    if (show === 'processes') {
      const { processes, position } = await asked(api.GET('/v1/processes', { params: { query: { ...query, ...atLeast(sequence) } } }));
      return { actions: [], processes, position };
    }
    const { actions, position } = await asked(api.GET('/v1/actions', { params: { query: { ...query, status: show, ...atLeast(sequence) } } }));
    return { actions, processes: [], position };
  };
  return new Query(ask, { wish, concerns: show === 'processes' ? kinds('process.') : concerns });
}

/** What is usual, by tool, of calls that were done lately. */
export async function usually(agent: string) {
  const query = { ...(agent !== '' && { agent }), status: 'done' as const, limit: COMPARED };
  const { actions } = await asked(api.GET('/v1/actions', { params: { query } }));
  return usual(actions);
}

export function oneAction(action_id: string) {
  const ask = async (sequence?: number) => {
    const path = { action_id };
    const { action, position } = await asked(api.GET('/v1/actions/{action_id}', { params: { path, query: atLeast(sequence) } }));
    const neverBegun = action.status === 'canceled' && (await wasNeverBegun(action_id, action.correlation_id));
    return { action, neverBegun, position };
  };
  return new Query(ask, { concerns: (event, { action }) => concerns(event) && ownerOf(event) === action.agent });
}

async function wasNeverBegun(action: string, correlation: string): Promise<boolean> {
  const { events } = await asked(api.GET('/v1/events', { params: { query: { correlation, limit: OF_TURN } } }));
  return isNeverBegun(events as Event[], action);
}

export function oneProcess(process_id: string) {
  const ask = (sequence?: number) =>
    asked(api.GET('/v1/processes/{process_id}', { params: { path: { process_id }, query: atLeast(sequence) } }));
  return new Query(ask, { concerns: (event, { process }) => kinds('process.')(event) && ownerOf(event) === process.agent });
}

/** What a process writes. What it wrote so far comes first. */
export class Writing {
  version = $state(0);
  readonly written = new Written();
  #frames = eachFrame(() => (this.version += 1));
  #stop: () => void;

  constructor(agent: string, process: string) {
    this.#stop = follow(
      { agent, live: true },
      {
        output: (output) => {
          if (output.process_id !== process) return;
          this.written.take(output);
          this.#frames.soon();
        },
      },
    );
  }

  end() {
    this.#stop();
    this.#frames.stop();
  }
}

/** What one ordered, and how far that is. */
export class Order {
  standing = $state<'none' | 'sending' | 'sent'>('none');
  error = $state('');

  stop(agent: string, about: { action_id: string } | { process_id: string }) {
    return this.#send(api.POST('/v1/commands', { body: { user: session.user, agent, command: 'cancel', ...about } }));
  }

  resolve(agent: string, action_id: string, happened: boolean, note: string) {
    const verdict = happened ? 'happened' : 'did_not_happen';
    const body = { user: session.user, agent, action_id, verdict, ...(note !== '' && { note }) } as const;
    return this.#send(api.POST('/v1/approvals', { body }));
  }

  async #send(request: Promise<{ data?: unknown; error?: unknown; response: Response }>) {
    this.standing = 'sending';
    this.error = '';
    try {
      await asked(request);
      this.standing = 'sent';
    } catch (error) {
      this.standing = 'none';
      this.error = message(error);
    }
  }
}
