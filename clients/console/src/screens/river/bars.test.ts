import { expect, test } from 'vitest';
import { bars, placeAt, type Bucket } from './bars';

function bucket(first: number, last: number, events: number, family: string): Bucket {
  return { first, last, events, since: '', families: [{ family, events }] };
}

const BUCKETS = [bucket(1, 10, 4, 'user'), bucket(31, 40, 16, 'tool'), bucket(91, 100, 1, 'moon')];

test('bars stand where their messages do', () => {
  expect(bars(BUCKETS).map(({ from, to, full, tone }) => [from, to, full, tone])).toEqual([
    [0, 0.1, 0.5, 'user'],
    [0.3, 0.4, 1, 'tool'],
    [0.9, 1, 0.25, 'system'],
  ]);
  expect(bars([])).toEqual([]);
});

test('a place in the strip is one where something happened', () => {
  expect([0, 0.05, 0.2, 0.35, 0.95, 1, 7, -1].map((share) => placeAt(BUCKETS, share))).toEqual([1, 6, 31, 36, 96, 100, 100, 1]);
  expect(placeAt([], 0.5)).toBe(0);
});
