// The time, for what is told in how long it takes: it moves on while somebody looks.
import { createSubscriber } from 'svelte/reactivity';

const STEP_MS = 250;

class Now {
  #subscribe = createSubscriber((update) => {
    const timer = setInterval(update, STEP_MS);
    return () => clearInterval(timer);
  });

  get time(): number {
    this.#subscribe();
    return Date.now();
  }
}

export const now = new Now();
