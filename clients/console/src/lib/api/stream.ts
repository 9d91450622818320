// Follows the log over `GET /v1/events/stream`. With `fetch`, since an `EventSource` can send no key. What was seen last is
// where it goes on after the connection was lost, so nothing is missed and nothing comes twice.
import { session } from '$lib/session.svelte';
import { problemOf, ProblemError } from './problem';
import { Reader, type Message } from './sse';
import type { Event, Output, Token } from './types';
import type { components } from './openapi';

export type TurnStatus = components['schemas']['TurnStatus'];

export interface Wish {
  agent?: string;
  thread?: string;
  correlation?: string;
  /** The place behind which to begin; without one, now. */
  after?: string;
  live?: boolean;
  turn_status?: boolean;
}

export interface Listener {
  event?: (event: Event) => void;
  token?: (token: Token) => void;
  output?: (output: Output) => void;
  turn?: (change: TurnStatus) => void;
  /** Whether it is connected, from here on. */
  connected?: (connected: boolean) => void;
  /** It will not come back by itself: what was asked for is wrong, or not allowed. */
  refused?: (problem: ProblemError) => void;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
/** Without a word, a heartbeat among them, for so long the connection counts as lost: twice the gateway's default and more. */
const SILENCE_MS = 40_000;

type Connection = Pick<Listener, 'connected' | 'refused'>;
type Take = (message: Message) => void;

/** Follows until what this returns is called. */
export function follow(wish: Wish, listener: Listener): () => void {
  return begin('/v1/events/stream', { ...wish }, listener, (message) => hand(message, listener));
}

/** Follows what happens in a fork from its beginning: the name of each event, and what it says. */
export function followFork(fork: string, listener: Connection, take: (name: string, told: unknown) => void): () => void {
  const taken = ({ event, data }: Message) => data !== '' && take(event, JSON.parse(data) as unknown);
  return begin(`/v1/forks/${fork}/events`, {}, listener, taken);
}

function begin(path: string, wish: Wish, listener: Connection, take: Take): () => void {
  const stop = new AbortController();
  void run(path, wish, listener, take, stop.signal);
  return () => stop.abort();
}

async function run(path: string, wish: Wish, listener: Connection, take: Take, stop: AbortSignal) {
  let pause = FIRST_PAUSE_MS;
  while (!stop.aborted) {
    try {
      await connect(path, wish, listener, take, stop, () => (pause = FIRST_PAUSE_MS));
    } catch (error) {
      if (stop.aborted) return;
      if (error instanceof ProblemError && isFinal(error)) {
        session.heed(error);
        return listener.refused?.(error);
      }
    }
    listener.connected?.(false);
    await passed(pause, stop);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

/** Too much at once and an unavailable log pass; that a request is wrong does not. */
function isFinal(error: ProblemError): boolean {
  return error.status >= 400 && error.status < 500 && error.status !== 429;
}

async function connect(path: string, wish: Wish, listener: Connection, take: Take, stop: AbortSignal, connected: () => void) {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const signal = AbortSignal.any([stop, silence.signal]);
    const headers = { ...session.headers(), accept: 'text/event-stream' };
    const answer = await fetch(`${path}?${query(wish)}`, { headers, signal, cache: 'no-store' });
    if (!answer.ok || !answer.body) throw await problemOf(answer);
    connected();
    listener.connected?.(true);
    const reader = new Reader();
    const pieces = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await pieces.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      for (const message of reader.read(value)) {
        if (stop.aborted) return;
        take(message);
        if (message.id !== '') wish.after = message.id;
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

function hand({ event, data }: Message, listener: Listener) {
  if (data === '') return;
  const told: unknown = JSON.parse(data);
  if (event === 'message') listener.event?.(told as Event);
  else if (event === 'token') listener.token?.(told as Token);
  else if (event === 'output') listener.output?.(told as Output);
  else if (event === 'turn.status') listener.turn?.(told as TurnStatus);
}

function query(wish: Wish): URLSearchParams {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(wish)) {
    if (value !== undefined && value !== '' && value !== false) fields.set(name, String(value));
  }
  return fields;
}

function passed(milliseconds: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    stop.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
