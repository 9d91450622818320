// What a user and an agent said to each other, and what the agent does meanwhile: folded from events. Pure: the same events
// give the same conversation, so a reload shows it again.
import { text, type Event, type Output, type Token } from '$lib/api/types';

/** How far a message is. */
export type Stage = 'sending' | 'failed' | 'accepted' | 'delivered' | 'decided' | 'undelivered';

export interface Part {
  digest: string;
  mediaType: string;
  name: string;
}

/** What the user said. */
export interface Said {
  kind: 'said';
  id: string;
  /** The turn it begins: its correlation id; empty until the gateway has it. */
  turn: string;
  text: string;
  parts: Part[];
  stage: Stage;
  /** Why it was not delivered, or not accepted. */
  reason: string;
  /** Whether it is answered together with another one. */
  joined: boolean;
  at: string;
}

/** What the agent said. */
export interface Words {
  kind: 'words';
  id: string;
  /** The turn it belongs to: its correlation id. */
  turn: string;
  text: string;
  /** Words on the way, the answer, or words that nobody asked for. */
  manner: 'way' | 'answer' | 'unasked';
  /** The kind of a failure that the words tell of; empty for an answer. */
  failure: string;
  /** How the model's answer ended; empty for a complete one. */
  ending: string;
  at: string;
}

/** What it thought, or what went wrong. */
export interface Aside {
  kind: 'thought' | 'failure' | 'review' | 'goal';
  id: string;
  turn: string;
  text: string;
  module: string;
  at: string;
}

export type ActionStage = 'asked' | 'running' | 'stopping' | 'done' | 'failed' | 'stopped' | 'never' | 'doubt';

/** What it asked the world for. */
export interface Doing {
  kind: 'doing';
  id: string;
  /** The turn it belongs to: its correlation id. */
  turn: string;
  tool: string;
  arguments: unknown;
  stage: ActionStage;
  /** Whether it goes on as a process in the background. */
  processId: string;
  background: boolean;
  at: string;
  began: string;
  ended: string;
  fraction: number | null;
  /** The last it said, or wrote. */
  last: string;
  /** Why it was not stopped when somebody wanted it. */
  refusal: string;
}

export type Item = Said | Words | Aside | Doing;

/** What a model is writing. */
export interface Draft {
  /** Which call of a model writes it; empty where an older service does not say. */
  call: string;
  text: string;
  reasoning: string;
}

/** Characters of a draft or of a line that are kept. */
const LONGEST = 200_000;
const LONGEST_LINE = 500;
/** Turns of which pieces came before their events, and pieces of one that are kept. */
const MOST_EARLY = 16;
const MOST_PIECES = 1_000;

export class Conversation {
  readonly agent: string;
  readonly user: string;
  /** In the order in which they came up. */
  #items = new Map<string, Item>();
  #drafts = new Map<string, Draft>();
  /** Pieces of turns whose messages were not told of yet: what is live may be faster than the log. */
  #early = new Map<string, Token[]>();
  /** Turns of this user: correlation ids. */
  #ours = new Set<string>();
  /** Messages that were answered. */
  #answered = new Set<string>();
  /** By correlation, which messages were said. */
  #messages = new Map<string, string[]>();
  /** Inputs of the agent that are not decided on yet, whoever they are from: correlation ids. */
  #undecided = new Set<string>();
  /** What was ordered to be stopped: actions, by the correlation of the order. */
  #orders = new Map<string, string>();
  /** By turn, the thread it belongs to. */
  #threads = new Map<string, string>();
  #place = { sequence: 0, position: -1 };

  constructor(agent: string, user: string) {
    this.agent = agent;
    this.user = user;
  }

  get items(): Item[] {
    return [...this.#items.values()];
  }

  get running(): Doing[] {
    return this.items.filter((item): item is Doing => item.kind === 'doing' && isRunning(item));
  }

  /** The threads of what is shown, in the order in which they came up. */
  get threads(): string[] {
    return [...new Set(this.items.map((item) => this.threadOf(item)))].filter((thread) => thread !== '');
  }

  /** The thread of an item; empty where it is not known yet, or there are none. */
  threadOf({ turn }: Item): string {
    return this.#threads.get(turn) ?? '';
  }

  get drafts(): Draft[] {
    return [...this.#drafts.values()];
  }

  /** Whether the agent is deciding: on something that was delivered, or with a model that writes. */
  get deciding(): boolean {
    return this.#undecided.size > 0 || this.#drafts.size > 0;
  }

  /** What the user says now, before the gateway has it. */
  say(id: string, words: string, at: string, parts: Part[] = []) {
    this.#items.set(id, { kind: 'said', id, turn: '', text: words, parts, stage: 'sending', reason: '', joined: false, at });
  }

  /** It was not accepted. */
  fail(id: string, reason: string) {
    this.#change(id, (item) => (item.kind === 'said' && item.stage === 'sending' ? { ...item, stage: 'failed', reason } : item));
  }

  /** It stands in the log. */
  accept(id: string) {
    this.#stage(id, 'accepted');
  }

  /** It will not be stopped. */
  refuse(action: string, refusal: string) {
    this.#does(action, (doing) => ({ ...doing, refusal, stage: doing.stage === 'stopping' ? 'running' : doing.stage }));
  }

  take(event: Event) {
    const { sequence, position } = event;
    if (sequence < this.#place.sequence || (sequence === this.#place.sequence && position <= this.#place.position)) return;
    this.#place = { sequence, position };
    if (event.thread_id) this.#threads.set(event.correlation_id, event.thread_id);
    if (event.meta.tags[0] === 'decision') this.#decided(event);
    const take = this.#takers[event.type];
    take?.(event);
  }

  #takers: Record<string, (event: Event) => void> = {
    'kairo.user.message.v1': (event) => {
      // Whom it is for is the router's to say, where the user did not.
      if (text(event, 'user') === this.user && text(event, 'agent') === this.agent) this.#said(event, 'accepted');
    },
    'kairo.user.command.v1': (event) => this.#order(event),
    'kairo.user.undelivered.v1': (event) => {
      this.#refused(event);
      this.#change(text(event, 'message_id'), (item) =>
        item.kind === 'said' ? { ...item, stage: 'undelivered', reason: text(event, 'reason') } : item,
      );
    },
    'kairo.agent.message.v1': (event) => {
      this.#undecided.add(event.correlation_id);
      if (text(event, 'user') === this.user) this.#said(event, 'delivered');
    },
    'kairo.agent.action.v1': (event) => (text(event, 'type') === 'say' ? this.#words(event) : this.#asks(event)),
    'kairo.agent.thought.v1': (event) => this.#aside('thought', event),
    'kairo.agent.failed.v1': (event) => {
      this.#refused(event);
      this.#aside('failure', event);
    },
    'kairo.agent.submodule_failed.v1': (event) => this.#aside('failure', event),
    'kairo.agent.reflected.v1': (event) => this.#aside('review', event),
    'kairo.agent.goal.v1': (event) => this.#aside('goal', event),
    'kairo.agent.joined.v1': (event) => {
      this.#change(text(event, 'message_id'), (item) => (item.kind === 'said' ? { ...item, joined: true } : item));
    },
    'kairo.agent.answer.v1': (event) => this.#ends(text(event, 'request_id'), event, text(event, 'status') === 'completed' ? 'done' : 'failed'),
    'kairo.tool.invoke.v1': (event) => {
      const never = text(event, 'executor') === 'nobody';
      this.#does(text(event, 'action_id'), (doing) => ({ ...doing, stage: never ? 'never' : 'running', began: event.ts }));
    },
    'kairo.tool.progress.v1': (event) => this.#progress(event),
    'kairo.process.progress.v1': (event) => this.#progress(event),
    'kairo.process.spawned.v1': (event) => {
      const action = text(event, 'action_id');
      const background = event.payload['background'] === true;
      this.#does(action, (doing) => ({ ...doing, stage: 'running', processId: text(event, 'process_id'), background, began: doing.began || event.ts }));
    },
    'kairo.process.canceled.v1': (event) => {
      this.#does(text(event, 'action_id'), (doing) => (isRunning(doing) ? { ...doing, stage: 'stopping' } : doing));
    },
    'kairo.process.exited.v1': (event) => this.#ends(text(event, 'action_id'), event, exited(event)),
    'kairo.tool.result.v1': (event) => this.#result(event),
  };

  /** A piece that a model writes. */
  token(token: Token) {
    const { correlation_id: turn, call_id: call = '', index = 0, text: piece, reasoning } = token;
    if (!this.#ours.has(turn)) return this.#keep(token);
    const known = this.#drafts.get(turn);
    // The first piece of another call, or what one has written before anybody listened; late for what is decided already.
    const begins = known?.call !== call || (call === '' && index === 0);
    if (begins && index > 0 && !this.#undecided.has(turn)) return;
    const draft = known && !begins ? known : { call, text: '', reasoning: '' };
    const grown = (so: string, more: string) => (so + more).slice(-LONGEST);
    this.#drafts.set(turn, reasoning ? { ...draft, reasoning: grown(draft.reasoning, piece) } : { ...draft, text: grown(draft.text, piece) });
  }

  #keep(token: Token) {
    const { correlation_id: turn } = token;
    const kept = this.#early.get(turn) ?? [];
    if (kept.length < MOST_PIECES) kept.push(token);
    this.#early.set(turn, kept);
    // Of those of others nobody wants to know.
    for (const oldest of [...this.#early.keys()].slice(0, -MOST_EARLY)) this.#early.delete(oldest);
  }

  /** Who listens anew is told from the beginning what is being written. */
  listens() {
    this.#drafts.clear();
    this.#early.clear();
  }

  /** A piece that a process writes. */
  output({ action_id: action, text: piece }: Output) {
    const line = piece.trimEnd().split('\n').at(-1) ?? '';
    if (line !== '') this.#does(action, (doing) => ({ ...doing, last: line.slice(-LONGEST_LINE) }));
  }

  #said(event: Event, stage: Stage) {
    const id = text(event, 'message_id');
    this.#ours.add(event.correlation_id);
    const early = this.#early.get(event.correlation_id) ?? [];
    this.#early.delete(event.correlation_id);
    early.forEach((token) => this.token(token));
    const said = this.#messages.get(event.correlation_id) ?? [];
    if (!said.includes(id)) this.#messages.set(event.correlation_id, [...said, id]);
    if (this.#items.has(id)) {
      // When it was said is the gateway's to say, as after a reload.
      if (stage === 'accepted') this.#change(id, (item) => ({ ...item, at: event.ts, turn: event.correlation_id }));
      return this.#stage(id, stage);
    }
    const state = event.payload['state'] === undefined ? '' : JSON.stringify(event.payload['state']);
    const words = text(event) || state;
    this.#items.set(id, { kind: 'said', id, turn: event.correlation_id, text: words, parts: parts(event), stage, reason: '', joined: false, at: event.ts });
  }

  #decided(event: Event) {
    const turn = event.correlation_id;
    this.#undecided.delete(turn);
    this.#drafts.delete(turn);
    this.#early.delete(turn);
    for (const id of this.#messages.get(turn) ?? []) this.#stage(id, 'decided');
  }

  #words(event: Event) {
    if (text(event, 'user') !== this.user) return;
    const message = text(event, 'message_id');
    const final = event.payload['final'] === true;
    const unasked = message === '' || this.#answered.has(message) || !this.#items.has(message);
    if (final && message !== '') this.#answered.add(message);
    // What answers no message, such as a reminder, is on the way to nothing.
    const manner = !final && message !== '' ? 'way' : unasked ? 'unasked' : 'answer';
    const [failure, ending] = [text(event, 'failure'), text(event, 'ending')];
    this.#items.set(event.event_id, { kind: 'words', id: event.event_id, turn: event.correlation_id, text: text(event), manner, failure, ending, at: event.ts });
  }

  #aside(kind: Aside['kind'], event: Event) {
    if (!this.#ours.has(event.correlation_id) || text(event) === '') return;
    this.#items.set(event.event_id, { kind, id: event.event_id, turn: event.correlation_id, text: text(event), module: text(event, 'module'), at: event.ts });
  }

  #asks(event: Event) {
    if (!this.#ours.has(event.correlation_id)) return;
    const isAsk = text(event, 'type') === 'ask';
    const tool = isAsk ? `@${text(event, 'agent')} ${text(event, 'tool') || text(event, 'kind')}` : text(event, 'tool');
    const given = event.payload['args'] ?? event.payload['task'] ?? event.payload['title'];
    this.doing({ id: event.event_id, turn: event.correlation_id, tool, arguments: given, at: event.ts, stage: isAsk ? 'running' : 'asked' });
  }

  /** An action; of one that began long ago, the read model says what there is to know. */
  doing(known: Pick<Doing, 'id' | 'turn' | 'tool' | 'arguments' | 'at' | 'stage'> & Partial<Doing>) {
    const nothing = { processId: '', background: false, began: '', ended: '', fraction: null, last: '', refusal: '' };
    if (!this.#items.has(known.id)) this.#items.set(known.id, { kind: 'doing', ...nothing, ...known });
  }

  #progress(event: Event) {
    const fraction = event.payload['fraction'];
    const last = text(event, 'message').slice(0, LONGEST_LINE);
    this.#does(text(event, 'action_id'), (doing) => ({
      ...doing,
      fraction: typeof fraction === 'number' ? fraction : doing.fraction,
      last: last || doing.last,
    }));
  }

  /** An order to stop something. */
  #order(event: Event) {
    if (text(event, 'command') !== 'cancel') return;
    const [action, process] = [text(event, 'action_id'), text(event, 'process_id')];
    const doing = this.items.find((item) => item.kind === 'doing' && (item.id === action || (process !== '' && item.processId === process)));
    if (!doing) return;
    this.#orders.set(event.correlation_id, doing.id);
    this.#does(doing.id, (doing) => (isRunning(doing) ? { ...doing, stage: 'stopping', refusal: '' } : doing));
  }

  /** What is said of an order to stop something that is not obeyed. */
  #refused(event: Event) {
    const action = this.#orders.get(event.correlation_id);
    if (action !== undefined) this.refuse(action, text(event) || text(event, 'kind') || text(event, 'reason'));
  }

  #result(event: Event) {
    if (event.payload['ok'] !== true) this.#refused(event);
    const action = text(event, 'action_id');
    const turn = event.correlation_id;
    const ok = event.payload['ok'] === true;
    const item = this.#items.get(action);
    const others = this.running.some((doing) => doing.id !== action && doing.turn === turn);
    // As long as others of the turn run, there may be nothing to say.
    if (this.#ours.has(turn) && !others) this.#undecided.add(turn);
    // Its action is over, the process goes on.
    if (ok && item?.kind === 'doing' && item.background) return;
    this.#ends(action, event, ok ? 'done' : failure(text(event, 'error')));
  }

  #ends(action: string, event: Event, stage: ActionStage) {
    this.#does(action, (doing) => (doing.stage === 'never' || doing.ended ? doing : { ...doing, stage, ended: event.ts }));
  }

  #does(action: string, change: (doing: Doing) => Doing) {
    this.#change(action, (item) => (item.kind === 'doing' ? change(item) : item));
  }

  /** Stages only go forward. */
  #stage(id: string, stage: Stage) {
    this.#change(id, (item) => (item.kind === 'said' && rank(stage) > rank(item.stage) ? { ...item, stage, reason: '' } : item));
  }

  #change(id: string, change: (item: Item) => Item) {
    const item = this.#items.get(id);
    if (item) this.#items.set(id, change(item));
  }
}

const STAGES: readonly Stage[] = ['sending', 'failed', 'accepted', 'delivered', 'decided', 'undelivered'];

function rank(stage: Stage): number {
  return STAGES.indexOf(stage);
}

export function isRunning({ stage }: Doing): boolean {
  return stage === 'asked' || stage === 'running' || stage === 'stopping';
}

function failure(kind: string): ActionStage {
  if (kind === 'canceled') return 'stopped';
  return kind === 'in_doubt' ? 'doubt' : 'failed';
}

function exited(event: Event): ActionStage {
  const outcome = text(event, 'outcome');
  if (outcome === 'canceled') return 'stopped';
  return outcome === 'exited' && (event.payload['code'] ?? 0) === 0 ? 'done' : 'failed';
}

function parts(event: Event): Part[] {
  const given = event.payload['parts'];
  if (!Array.isArray(given)) return [];
  return given.map((part: Record<string, unknown>) => ({
    digest: String(part['digest'] ?? ''),
    mediaType: String(part['media_type'] ?? part['mediaType'] ?? ''),
    name: String(part['name'] ?? ''),
  }));
}
