// Something that is asked for by hand, and what came of it.
import { message } from '$lib/api/problem';
import { session } from '$lib/session.svelte';
import { inTurn } from './turns';

export class Once<T> {
  found = $state.raw<T | null>(null);
  error = $state('');
  busy = $state(false);
  #turn = 0;

  async ask(request: () => Promise<T>) {
    const turn = (this.#turn += 1);
    this.busy = true;
    try {
      const found = await inTurn(request, () => turn === this.#turn);
      if (turn !== this.#turn) return;
      this.found = found;
      this.error = '';
    } catch (failed) {
      if (turn !== this.#turn) return;
      session.heed(failed);
      this.error = message(failed);
      this.found = null;
    }
    this.busy = false;
  }

  /** What was found is of something else. */
  forget() {
    this.#turn += 1;
    this.found = null;
    this.error = '';
    this.busy = false;
  }
}
