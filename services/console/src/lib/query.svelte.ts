// What a query answers, kept up with the log: asked again when something happened, never more than one request at a time.
import { message } from '$lib/api/problem';
import { follow, type Wish } from '$lib/api/stream';
import { untrack } from 'svelte';

/** Many events may come at once; what they change is asked for once. */
const TOGETHER_MS = 700;

export class Query<T> {
  data = $state.raw<T | null>(null);
  error = $state('');
  /** When `data` was answered. */
  at = $state<number | null>(null);
  connected = $state(false);
  /** When the connection was lost: what is shown is as old as that. */
  lost = $state<number | null>(null);

  #ask: () => Promise<T>;
  #asking = false;
  #again = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stop: () => void = () => {};
  #ended = false;

  constructor(ask: () => Promise<T>) {
    this.#ask = ask;
  }

  /** Asks, and again whenever something of this comes; until what this returns is called. */
  follow(wish: Wish = {}): () => void {
    // Whose effect this is in depends on which query it is, not on what that is answered.
    return untrack(() => this.#follow(wish));
  }

  #follow(wish: Wish): () => void {
    this.#ended = false;
    void this.ask();
    this.#stop = follow(wish, {
      event: () => this.soon(),
      connected: (connected) => {
        if (this.connected && !connected) this.lost = Date.now();
        // What happened meanwhile may not be among what comes.
        if (!this.connected && connected && this.lost !== null) this.soon();
        this.connected = connected;
      },
      refused: (problem) => (this.error = problem.message),
    });
    return () => this.end();
  }

  end() {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#stop();
  }

  soon() {
    if (this.#ended) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.ask();
    }, TOGETHER_MS);
  }

  async ask() {
    if (this.#asking) {
      this.#again = true;
      return;
    }
    this.#asking = true;
    try {
      const data = await this.#ask();
      if (this.#ended) return;
      this.data = data;
      this.at = Date.now();
      this.error = '';
    } catch (error) {
      if (!this.#ended) this.error = message(error);
    }
    this.#asking = false;
    if (this.#again) {
      this.#again = false;
      this.soon();
    }
  }
}
