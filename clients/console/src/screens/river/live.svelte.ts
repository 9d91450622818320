// The log from a while ago on, as it goes on; what is older and what is newer is read when somebody gets there.
import { api, asked } from '$lib/api/client';
import { message } from '$lib/api/problem';
import { follow } from '$lib/api/stream';
import { placeOf, type Event } from '$lib/api/types';
import { Contact } from '$lib/contact.svelte';
import { Feed } from '$lib/events/feed';
import { eachFrame } from '$lib/frames';

/** Events from before that are shown at first, and read at once later. */
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
  /** Whether something stands before what is kept, and behind it: then nothing is followed. */
  older = $state(false);
  newer = $state(false);
  readonly contact = new Contact();
  readonly feed = new Feed();

  #waiting: Event[] = [];
  #stop: () => void = () => {};
  #ended = false;
  #reading = false;
  #frames = eachFrame(() => this.#show());

  /** Where `at` is given, around that message instead of at the end. */
  constructor(
    readonly narrowed: Narrowed,
    readonly before = BEFORE,
    readonly at = 0,
  ) {}

  async begin() {
    this.loading = true;
    await this.#read(async () => {
      const end = this.at > 0 ? { before: this.at + 1, limit: this.before } : { latest: this.before };
      const page = await this.#page(end);
      this.#waiting.push(...page.events);
      this.#show();
      this.older = page.next_before !== null && page.next_before !== undefined;
      if (this.at > 0) await this.#goOn();
      else this.#follow();
    });
    this.loading = false;
  }

  end() {
    this.#ended = true;
    this.#stop();
    this.#frames.stop();
  }

  /** Reads what stands before all that is kept. */
  async back() {
    const { first, room } = this.feed;
    // What is farther back is gone to, with the outline.
    if (!this.older || !first || room < this.before) return;
    await this.#read(async () => {
      // The first message again, of which a part may have been folded.
      const page = await this.#page({ before: first.sequence + 1, limit: this.before });
      this.feed.unshift(page.events);
      this.older = page.next_before !== null && page.next_before !== undefined;
      this.version += 1;
    });
  }

  /** Reads what stands behind all that is kept, where that is not followed. */
  async forth() {
    if (this.newer) await this.#read(() => this.#goOn());
  }

  async #goOn() {
    const page = await this.#page({ after: this.#last(), limit: this.before });
    this.#waiting.push(...page.events);
    this.#show();
    this.newer = page.next_after !== null && page.next_after !== undefined;
    if (!this.newer) this.#follow();
  }

  #last(): string {
    const { last } = this.feed;
    return last ? placeOf(last) : String(this.at);
  }

  async #page(part: { latest?: number; before?: number; after?: string; limit?: number }) {
    const page = await asked(api.GET('/v1/events', { params: { query: { ...this.narrowed, ...part } } }));
    return { ...page, events: this.#ended ? [] : (page.events as Event[]) };
  }

  /** One after the other; what fails is told. */
  async #read(part: () => Promise<void>) {
    if (this.#reading) return;
    this.#reading = true;
    try {
      await part();
      this.error = '';
    } catch (error) {
      this.error = message(error);
    }
    this.#reading = false;
  }

  #follow() {
    if (this.#ended) return;
    this.#stop = follow(
      { ...this.narrowed, after: this.#last() },
      {
        event: (event) => {
          this.#waiting.push(event);
          this.#frames.soon();
        },
        connected: (connected) => this.contact.heard(connected),
        refused: (problem) => (this.error = problem.message),
      },
    );
  }

  #show() {
    this.feed.push(this.#waiting);
    // What is folded can be read again.
    if (this.feed.folded > 0) this.older = true;
    this.#waiting = [];
    this.version += 1;
  }
}
