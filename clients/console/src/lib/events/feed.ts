// Events as they come, in bounded memory: the newest are kept, older ones are folded into a number. Pure. Nothing is dropped
// without being counted: received = kept + folded.
import type { Event } from '$lib/api/types';

/** Events that are kept at most. */
export const MOST_KEPT = 20_000;

export type Test = (event: Event) => boolean;

export class Feed {
  #most: number;
  #kept: Event[] = [];
  /** Those of them that pass the filter. */
  #shown: Event[] = [];
  #test: Test = () => true;
  #folded = 0;
  #byId = new Map<string, Event>();
  /** Of those that passed, how many are gone, less those that came in front. */
  #shownFolded = 0;
  #filters = 0;

  constructor(most = MOST_KEPT) {
    this.#most = most;
  }

  get received(): number {
    return this.#kept.length + this.#folded;
  }

  get kept(): number {
    return this.#kept.length;
  }

  get folded(): number {
    return this.#folded;
  }

  /** Those that are kept and pass the filter, the oldest first. The array is the feed's own. */
  get shown(): readonly Event[] {
    return this.#shown;
  }

  /** How many have passed the filter so far, with those that are folded since and without those that came in front. */
  get passed(): number {
    return this.#shown.length + this.#shownFolded;
  }

  /**
   * Of those that passed the filter, how many are folded, less those that were put in front later: the first that is shown is the one
   * behind them.
   */
  get before(): number {
    return this.#shownFolded;
  }

  push(events: readonly Event[]) {
    for (const event of events) {
      this.#kept.push(event);
      this.#byId.set(event.event_id, event);
      if (this.#test(event)) this.#shown.push(event);
    }
    // By the tenth, as each time the arrays are moved.
    if (this.#kept.length > this.#most) this.#fold(this.#kept.length - this.#most + Math.floor(this.#most / 10));
  }

  /** Puts what stands before all that is kept in front of it; what is kept already is passed over. None of it where that would be too many. */
  unshift(events: readonly Event[]): boolean {
    const older = events.filter(({ event_id }) => !this.#byId.has(event_id));
    if (this.#kept.length + older.length > this.#most) return false;
    for (const event of older) this.#byId.set(event.event_id, event);
    const shown = older.filter(this.#test);
    this.#kept.unshift(...older);
    this.#shown.unshift(...shown);
    // So that those behind stay where they are counted.
    this.#shownFolded -= shown.length;
    return true;
  }

  /** The oldest that is kept. */
  get first(): Event | undefined {
    return this.#kept[0];
  }

  /** How many more can be put in front. */
  get room(): number {
    return this.#most - this.#kept.length;
  }

  /** The newest. */
  get last(): Event | undefined {
    return this.#kept.at(-1);
  }

  /** Raised when what is shown is another list altogether. */
  get filters(): number {
    return this.#filters;
  }

  filter(test: Test) {
    this.#filters += 1;
    this.#test = test;
    this.#shown = this.#kept.filter(test);
    this.#shownFolded = 0;
  }

  find(id: string): Event | undefined {
    return this.#byId.get(id);
  }

  /** What follows from an event, as far as it is kept. */
  effects(id: string): Event[] {
    return this.#kept.filter((event) => event.causation_id === id && event.event_id !== id);
  }

  #fold(count: number) {
    const gone = this.#kept.splice(0, count);
    this.#folded += gone.length;
    const last = gone.at(-1);
    for (const event of gone) this.#byId.delete(event.event_id);
    if (!last) return;
    const left = this.#shown.findIndex((event) => isBehind(event, last));
    const removed = left < 0 ? this.#shown.length : left;
    this.#shown.splice(0, removed);
    this.#shownFolded += removed;
  }
}

function isBehind(event: Event, other: Event): boolean {
  return event.sequence > other.sequence || (event.sequence === other.sequence && event.position > other.position);
}
