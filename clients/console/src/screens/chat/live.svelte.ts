// A conversation, as far as the log has it, and then as it goes on.
import { api, asked } from '$lib/api/client';
import { message, ProblemError } from '$lib/api/problem';
import { follow } from '$lib/api/stream';
import { placeOf, type Event } from '$lib/api/types';
import { Contact } from '$lib/contact.svelte';
import { eachFrame } from '$lib/frames';
import { Conversation, type Doing, type Draft, type Item, type Part } from './fold';

/** Events that are asked for at first, and at most. */
const FIRST = 500;
const MOST = 1000;

export class Live {
  items = $state.raw<Item[]>([]);
  /** The threads of these, by their ids. */
  threads = $state.raw<string[]>([]);
  running = $state.raw<Doing[]>([]);
  drafts = $state.raw<Draft[]>([]);
  deciding = $state(false);
  loading = $state(true);
  error = $state('');
  /** Whether there is more before what is shown. */
  more = $state(false);
  readonly contact = new Contact();

  #conversation: Conversation;
  #stop: () => void = () => {};
  /** Counts how often it began: what was asked before is not heard any more. */
  #begun = 0;
  #frames = eachFrame(() => this.#show());
  #latest = FIRST;

  constructor(
    readonly agent: string,
    readonly user: string,
  ) {
    this.#conversation = new Conversation(agent, user);
  }

  async begin() {
    this.end();
    const begun = this.#begun;
    try {
      await this.#begin(begun);
    } catch (error) {
      if (begun !== this.#begun) return;
      this.error = message(error);
      this.loading = false;
    }
  }

  end() {
    this.#begun += 1;
    this.#stop();
    this.#frames.stop();
  }

  /** Those of the items that belong to a thread, or to none that is known yet. */
  of(thread: string): Item[] {
    return this.items.filter((item) => [thread, ''].includes(this.#conversation.threadOf(item)));
  }

  async earlier() {
    this.#latest = MOST;
    await this.begin();
  }

  /** Says it; what becomes of it comes back with the log. The same id is the same message, however often it is sent. */
  async say(words: string, parts: Part[] = [], id = newId()) {
    this.#conversation.say(id, words, new Date().toISOString(), parts);
    this.#frames.soon();
    try {
      await this.#send(this.agent, words, parts, id);
      this.#conversation.accept(id);
    } catch (error) {
      this.#conversation.fail(id, message(error));
    }
    this.#frames.soon();
  }

  /** Says something to another agent, whose conversation shows it. */
  async sayTo(agent: string, words: string, parts: Part[] = []) {
    await this.#send(agent, words, parts, newId());
  }

  /** Has an action stopped, or the process that it became. What became of that comes back with the log, too. */
  async stop({ id, processId, background }: Doing) {
    const about = background ? { process_id: processId } : { action_id: id };
    try {
      await asked(api.POST('/v1/commands', { body: { user: this.user, agent: this.agent, command: 'cancel', ...about } }));
    } catch (error) {
      this.#conversation.refuse(id, message(error));
      this.#frames.soon();
    }
  }

  async #send(agent: string, text: string, parts: Part[], id: string) {
    const given = parts.map(({ digest, name }) => ({ digest, ...(name && { name }) }));
    const body = { user: this.user, agent, message_id: id, ...(text && { text }), ...(given.length > 0 && { parts: given }) };
    await asked(api.POST('/v1/messages', { body }));
  }

  async #begin(begun: number) {
    const { agent } = this;
    const query = { agent, latest: this.#latest };
    const [{ events }, { actions }, { processes }] = await Promise.all([
      asked(api.GET('/v1/events', { params: { query } })),
      asked(api.GET('/v1/actions', { params: { query: { agent, in_flight: true } } })),
      asked(api.GET('/v1/processes', { params: { query: { agent, running: true } } })),
    ]);
    if (begun !== this.#begun) return;
    const conversation = new Conversation(agent, this.user);
    const first = events[0]?.sequence ?? 0;
    const running = new Map(processes.map((process) => [process.action_id, process]));
    // What began before the events that were asked for.
    for (const action of actions.filter((action) => action.sequence < first)) {
      const process = running.get(action.action_id);
      conversation.doing({
        id: action.action_id,
        turn: action.correlation_id,
        tool: action.tool,
        arguments: action.arguments,
        at: action.decided_at,
        stage: action.invoked_at ? 'running' : 'asked',
        began: action.invoked_at ?? '',
        processId: process?.process_id ?? '',
        fraction: action.fraction,
        last: action.progress_message ?? '',
      });
    }
    for (const event of events) conversation.take(event as Event);
    this.#conversation = conversation;
    this.more = events.length >= this.#latest && this.#latest < MOST;
    this.loading = false;
    this.error = '';
    this.#show();
    const last = events.at(-1);
    this.#stop = follow(
      { agent, after: last ? placeOf(last as Event) : '0', live: true },
      {
        event: (event) => this.#heard(() => conversation.take(event)),
        token: (token) => this.#heard(() => conversation.token(token)),
        output: (output) => this.#heard(() => conversation.output(output)),
        connected: (connected) => this.#connected(connected),
        refused: (problem: ProblemError) => (this.error = problem.message),
      },
    );
  }

  #heard(take: () => void) {
    take();
    this.#frames.soon();
  }

  #connected(connected: boolean) {
    this.contact.heard(connected);
    if (connected) this.#heard(() => this.#conversation.listens());
  }

  #show() {
    this.items = this.#conversation.items;
    const { threads } = this.#conversation;
    if (threads.join() !== this.threads.join()) this.threads = threads;
    this.running = this.#conversation.running;
    this.drafts = this.#conversation.drafts;
    this.deciding = this.#conversation.deciding;
  }
}

/** What the threads of a conversation are called, by their ids. */
export async function titlesOf(agent: string, user: string): Promise<Map<string, string>> {
  const { threads } = await asked(api.GET('/v1/threads', { params: { query: { agent, user, status: 'all', limit: MOST } } }));
  return new Map(threads.map(({ thread_id, title }) => [thread_id, title]));
}

/** `crypto.randomUUID` is there only on pages that came over TLS or from this machine. */
function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
