// The log from a while ago on, as it goes on.
import { api, asked } from '$lib/api/client';
import { message } from '$lib/api/problem';
import { follow } from '$lib/api/stream';
import { placeOf, type Event } from '$lib/api/types';
import { Feed } from '$lib/events/feed';
import { eachFrame } from '$lib/frames';

/** Events from before that are shown at first. */
const BEFORE = 500;

export interface Narrowed {
  agent?: string;
  thread?: string;
  correlation?: string;
}

export class Live {
  /** Raised with each frame in which something came. */
  version = $state(0);
  loading = $state(true);
  error = $state('');
  connected = $state(false);
  lost = $state<number | null>(null);
  readonly feed = new Feed();

  #waiting: Event[] = [];
  #stop: () => void = () => {};
  #ended = false;
  #frames = eachFrame(() => this.#show());

  constructor(
    readonly narrowed: Narrowed,
    readonly before = BEFORE,
  ) {}

  async begin() {
    this.loading = true;
    try {
      const query = { ...this.narrowed, latest: this.before };
      const { events } = await asked(api.GET('/v1/events', { params: { query } }));
      if (this.#ended) return;
      this.#waiting.push(...(events as Event[]));
      this.#show();
      const last = events.at(-1);
      this.#follow(last ? placeOf(last as Event) : '0');
      this.error = '';
    } catch (error) {
      this.error = message(error);
    }
    this.loading = false;
  }

  end() {
    this.#ended = true;
    this.#stop();
    this.#frames.stop();
  }

  #follow(after: string) {
    this.#stop = follow(
      { ...this.narrowed, after },
      {
        event: (event) => {
          this.#waiting.push(event);
          this.#frames.soon();
        },
        connected: (connected) => {
          if (this.connected && !connected) this.lost = Date.now();
          this.connected = connected;
        },
        refused: (problem) => (this.error = problem.message),
      },
    );
  }

  #show() {
    this.feed.push(this.#waiting);
    this.#waiting = [];
    this.version += 1;
  }
}
