// The events of one turn, from its first on, as it goes on.
import { api, asked } from '$lib/api/client';
import { message } from '$lib/api/problem';
import { follow } from '$lib/api/stream';
import { placeOf, type Event } from '$lib/api/types';
import { Contact } from '$lib/contact.svelte';
import { Feed } from '$lib/events/feed';
import { eachFrame } from '$lib/frames';

/** Of one turn; what is more is not drawn. */
export const MOST = 2_000;
const PAGE = 500;

export class LiveTurn {
  version = $state(0);
  loading = $state(true);
  error = $state('');
  /** There are more than are drawn. */
  cut = $state(false);
  readonly contact = new Contact();
  readonly feed = new Feed(MOST * 2);

  #stop: () => void = () => {};
  #ended = false;
  #frames = eachFrame(() => (this.version += 1));

  constructor(readonly turn: string) {}

  async begin() {
    this.loading = true;
    try {
      let after: string | undefined;
      do {
        const query = { correlation: this.turn, limit: PAGE, ...(after && { after }) };
        const { events, next_after } = await asked(api.GET('/v1/events', { params: { query } }));
        if (this.#ended) return;
        this.#take(events as Event[]);
        after = next_after === null || next_after === undefined ? undefined : String(next_after);
      } while (after !== undefined && !this.cut);
      const last = this.feed.shown.at(-1);
      this.#follow(last ? placeOf(last) : '0');
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

  #take(events: readonly Event[]) {
    const fresh = events.filter((event) => !this.feed.find(event.event_id));
    const room = Math.max(0, MOST - this.feed.received);
    if (fresh.length > room) this.cut = true;
    this.feed.push(fresh.slice(0, room));
    this.#frames.soon();
  }

  #follow(after: string) {
    this.#stop();
    this.#stop = follow(
      { correlation: this.turn, after },
      {
        event: (event) => this.#take([event]),
        connected: (connected) => this.contact.heard(connected),
        refused: (problem) => (this.error = problem.message),
      },
    );
  }
}
