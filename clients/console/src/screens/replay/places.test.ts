import type { Event } from '$lib/api/types';
import { expect, test } from 'vitest';
import { indexAt, placesOf, step } from './places';

function event(sequence: number, position: number, verb: string, text = ''): Event {
  return { sequence, position, subject: `kairo.agent.a.${verb}`, type: `kairo.agent.${verb}.v1`, ts: '', payload: { text }, correlation_id: 't' } as unknown as Event;
}

const PLACES = placesOf([event(2, 0, 'message'), event(5, 0, 'decision'), event(5, 1, 'decision', 'said'), event(7, 0, 'message'), event(9, 0, 'decision')]);

test('a message is one place, whatever it holds', () => {
  expect(PLACES.map(({ sequence, isDecision }) => [sequence, isDecision])).toEqual([[2, false], [5, true], [7, false], [9, true]]);
  expect(PLACES[1]!.kinds).toHaveLength(2);
  expect(PLACES[1]!.text).toBe('said');
});

test('one is at the last place that is not behind', () => {
  expect([0, 2, 4, 5, 8, 99].map((sequence) => indexAt(PLACES, sequence))).toEqual([0, 0, 0, 1, 2, 3]);
  expect(indexAt([], 5)).toBe(0);
});

test('by messages or by decisions', () => {
  expect(step(PLACES, 1, 1, false)).toBe(2);
  expect(step(PLACES, 1, 1, true)).toBe(3);
  expect(step(PLACES, 2, -1, true)).toBe(1);
  expect(step(PLACES, 1, -1, true)).toBe(1);
});
