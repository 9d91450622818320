// What a query answers, and what it answers later: it is asked again whenever the log has something that may change the
// answer. So what is shown is the gateway's, and never a second copy of how it comes about.
import { kindOf, type Event, type Output } from './types';
import { message, ProblemError } from './problem';
import { follow, type Wish } from './stream';

export interface Answered {
  /** The message of the log up to which the answer goes. */
  position: number;
}

export interface Watch<T> {
  /** Asks; with a place in the log that the answer must take account of. */
  ask: (atLeast?: number) => Promise<T>;
  /** Beginnings of the kinds of events that may change the answer. */
  kinds: readonly string[];
  /** What to follow; everything where nothing is said. */
  wish?: Wish;
  output?: (output: Output) => void;
}

export class Watched<T extends Answered> {
  answer = $state.raw<T | null>(null);
  error = $state('');
  connected = $state(false);
  lost = $state<number | null>(null);

  #watch: Watch<T>;
  #stop: () => void = () => {};
  #ended = false;
  #asking = false;
  /** What the next answer must take account of. */
  #wanted = 0;

  constructor(watch: Watch<T>) {
    this.#watch = watch;
  }

  get loading(): boolean {
    return this.answer === null && this.error === '';
  }

  async begin() {
    this.#stop();
    this.error = '';
    await this.#ask();
    if (!this.answer || this.#ended) return;
    this.#stop = follow(
      { ...this.#watch.wish, after: String(this.answer.position) },
      {
        event: (event) => this.#heard(event),
        output: (output) => this.#watch.output?.(output),
        connected: (connected) => {
          if (this.connected && !connected) this.lost = Date.now();
          this.connected = connected;
          if (connected) this.#goOn();
        },
        refused: (problem) => (this.error = problem.message),
      },
    );
  }

  end() {
    this.#ended = true;
    this.#stop();
  }

  /** Asks again, for what is known to stand in the log. */
  async again(sequence: number) {
    this.#wanted = Math.max(this.#wanted, sequence);
    if (this.#asking) return;
    // One question at a time: what comes meanwhile is asked for together.
    while (!this.#ended && this.error === '' && this.#wanted > (this.answer?.position ?? 0)) await this.#ask();
  }

  #heard(event: Event) {
    const kind = kindOf(event);
    if (this.#watch.kinds.some((begin) => kind.startsWith(begin))) void this.again(event.sequence);
  }

  async #ask() {
    this.#asking = true;
    try {
      const answer = await this.#watch.ask(this.#wanted || undefined);
      if (!this.#ended) this.answer = answer;
    } catch (error) {
      if (!this.#ended && !(this.answer && isBehind(error))) this.error = message(error);
    }
    this.#asking = false;
  }

  /** The gateway is there again: what went wrong meanwhile is asked for anew. */
  #goOn() {
    if (this.error === '') return;
    this.error = '';
    void this.again(this.#wanted);
  }
}

/** The read model is not that far yet, after as long as the gateway waits: it is asked again. */
function isBehind(error: unknown): boolean {
  return error instanceof ProblemError && error.problem?.wanted !== undefined;
}
