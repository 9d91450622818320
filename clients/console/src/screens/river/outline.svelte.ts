// How much there is where in the log, asked for again now and then while it grows.
import { api, asked } from '$lib/api/client';
import type { Bucket } from './bars';
import type { Narrowed } from './live.svelte';

const BUCKETS = 120;
const EVERY_MS = 15_000;

export class Outline {
  buckets = $state.raw<readonly Bucket[]>([]);
  #at = 0;
  #asking = false;

  /** What is narrowed otherwise has none. */
  constructor(readonly narrowed: Narrowed) {}

  /** Asks where that is due. A key that may not ask is shown none. */
  async ask() {
    const { correlation, ...query } = this.narrowed;
    if (correlation || this.#asking || Date.now() - this.#at < EVERY_MS) return;
    this.#asking = true;
    try {
      const { buckets } = await asked(api.GET('/v1/events/outline', { params: { query: { ...query, buckets: BUCKETS } } }));
      this.buckets = buckets;
    } catch {
      this.buckets = [];
    }
    this.#at = Date.now();
    this.#asking = false;
  }
}
