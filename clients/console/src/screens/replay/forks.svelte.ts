// The forks that are open, and closing one.
import { api, asked, done } from '$lib/api/client';
import type { Fork } from '$lib/api/types';
import { Once } from './once.svelte';

export class Forks extends Once<{ forks: Fork[]; max_forks: number }> {
  look() {
    return this.ask(() => asked(api.GET('/v1/forks')));
  }

  /** Closes one, which leaves its place. */
  close(fork: string) {
    return this.ask(async () => {
      await done(api.DELETE('/v1/forks/{fork}', { params: { path: { fork } } }));
      return asked(api.GET('/v1/forks'));
    });
  }
}
