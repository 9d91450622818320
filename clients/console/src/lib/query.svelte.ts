// What a query answers, and what it answers later: it is asked again when the log has something that may change the answer, and
// for no less. So what is shown is the gateway's, and never a second copy of how it comes about.
import { message, ProblemError } from './api/problem';
import { follow, type Wish } from './api/stream';
import { kindOf, type Event } from './api/types';
import { pause } from './asking';
import { Contact } from './contact.svelte';
import { untrack } from 'svelte';

/** What may change an answer. */
export interface Watch<T> {
  /** Whether this event may change the answer that is there; any may where nothing is said. */
  concerns?(event: Event, data: T): boolean;
  /** What to follow; everything where nothing is said. */
  wish?: Wish;
}

/** Events whose kinds begin with one of these. */
export function kinds(...begins: readonly string[]): (event: Event) => boolean {
  return (event) => begins.some((begin) => kindOf(event).startsWith(begin));
}

/** An answer that says up to which message of the log it goes. */
export interface Placed {
  position: number;
}

/** The place in the log that an answer must take account of, as a field of a query. */
export function atLeast(sequence: number | undefined): { at_least?: number } {
  return sequence === undefined ? {} : { at_least: sequence };
}

export class Query<T> {
  data = $state.raw<T | null>(null);
  error = $state('');
  /** When `data` was answered. */
  at = $state<number | null>(null);
  readonly contact = new Contact();

  #ask: (atLeast?: number) => Promise<T>;
  #watch: Watch<T>;
  /** Opens what is followed, once it is known from which place on; none where nothing is. */
  #open: ((after: number) => void) | null = null;
  #stop: () => void = () => {};
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Whether nothing is followed, but asked again and again: it is as connected as its last answer. */
  #polled = false;
  #ended = false;
  #asking = false;
  #again = false;
  #askedAt = 0;
  #wanted = 0;

  constructor(ask: (atLeast?: number) => Promise<T>, watch: Watch<T> = {}) {
    this.#ask = ask;
    this.#watch = watch;
  }

  get loading(): boolean {
    return this.data === null && this.error === '';
  }

  /** Asks, and again whenever the answer may have changed; until what this returns is called. */
  follow(this: Query<Placed>): () => void {
    // Whose effect this is in depends on which query it is, not on what that is answered.
    return untrack(() => {
      this.#open = (after) => (this.#stop = this.#follow(after));
      return this.#begin();
    });
  }

  /** Asks, and again every so often while somebody looks: for what stands in no event. */
  every(milliseconds: number): () => void {
    return untrack(() => {
      const timer = setInterval(() => document.visibilityState === 'visible' && this.ask(), milliseconds);
      this.#stop = () => clearInterval(timer);
      this.#polled = true;
      return this.#begin();
    });
  }

  /** Asks once. */
  once(): () => void {
    return untrack(() => this.#begin());
  }

  end() {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#stop();
  }

  /** Asks now; where an answer is under way, once more after that. */
  async ask() {
    if (this.#asking) {
      this.#again = true;
      return;
    }
    this.#asking = true;
    this.#askedAt = Date.now();
    try {
      this.#answered(await this.#ask(this.#wanted || undefined));
    } catch (error) {
      this.#failed(error);
    }
    this.#asking = false;
    if (this.#ended) return;
    if (this.#again) {
      this.#again = false;
      void this.ask();
    } else this.#soon();
  }

  #begin(): () => void {
    this.#ended = false;
    void this.ask();
    return () => this.end();
  }

  #answered(data: T) {
    if (this.#ended) return;
    this.data = data;
    this.at = Date.now();
    this.error = '';
    if (this.#polled) this.contact.heard(true);
    this.#open?.(this.#position() ?? 0);
    this.#open = null;
  }

  #failed(error: unknown) {
    // The read model is not that far yet, after as long as the gateway waits: it is asked again.
    if (this.#ended || (this.data !== null && isBehind(error))) return;
    this.error = message(error);
    if (this.#polled) this.contact.heard(false);
  }

  #follow(after: number): () => void {
    return follow(
      { ...this.#watch.wish, after: String(after) },
      {
        event: (event) => this.#heard(event),
        connected: (connected) => {
          this.contact.heard(connected);
          // The gateway is there again: what went wrong meanwhile is asked for anew.
          if (connected && this.error !== '') void this.ask();
        },
        refused: (problem) => (this.error = problem.message),
      },
    );
  }

  #heard(event: Event) {
    if (this.data !== null && this.#watch.concerns?.(event, this.data) === false) return;
    this.#wanted = Math.max(this.#wanted, event.sequence);
    this.#soon();
  }

  #soon() {
    if (this.#timer !== undefined || this.#ended) return;
    const asking = { wanted: this.#wanted, position: this.#position(), askedAt: this.#askedAt, open: this.#asking, failed: this.error !== '' };
    const wait = pause(asking, Date.now());
    if (wait === null) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.ask();
    }, wait);
  }

  #position(): number | null {
    return (this.data as Partial<Placed> | null)?.position ?? null;
  }
}

function isBehind(error: unknown): boolean {
  return error instanceof ProblemError && error.problem?.wanted !== undefined;
}
