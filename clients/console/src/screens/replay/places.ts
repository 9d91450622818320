// The places of an agent's log that one can go to: a message each. Pure.
import { kindOf, type Event } from '$lib/api/types';

export interface Place {
  sequence: number;
  ts: string;
  kinds: string[];
  isDecision: boolean;
  /** What it says first. */
  text: string;
  turn: string;
}

export function placesOf(events: readonly Event[]): Place[] {
  const places: Place[] = [];
  for (const event of events) {
    const last = places.at(-1);
    const text = String(event.payload['text'] ?? '');
    if (last?.sequence === event.sequence) {
      last.kinds.push(kindOf(event));
      last.text ||= text;
      continue;
    }
    const isDecision = event.subject.endsWith('.decision');
    places.push({ sequence: event.sequence, ts: event.ts, kinds: [kindOf(event)], isDecision, text, turn: event.correlation_id });
  }
  return places;
}

/** Which of the places one is at: the last that is not behind the sequence; the first where all are. */
export function indexAt(places: readonly Place[], sequence: number): number {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle]!.sequence <= sequence) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** The next place in a direction, or the next decision; where one is, if there is none. */
export function step(places: readonly Place[], from: number, by: 1 | -1, decision: boolean): number {
  for (let at = from + by; at >= 0 && at < places.length; at += by) {
    if (!decision || places[at]!.isDecision) return at;
  }
  return from;
}
