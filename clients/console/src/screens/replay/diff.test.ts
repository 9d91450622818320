import { expect, test } from 'vitest';
import { changes, MOST } from './diff';

function told(before: unknown, after: unknown): string[] {
  return changes(before, after).map(({ path, kind }) => `${kind} ${path.join('.')}`);
}

test('what differs is told with its path', () => {
  expect(told({ a: 1, b: { c: 2, d: 3 } }, { a: 1, b: { c: 4, e: 5 } })).toEqual(['changed b.c', 'removed b.d', 'added b.e']);
  expect(told({ a: [1] }, { a: [1] })).toEqual([]);
  expect(told({ a: [1] }, { a: null })).toEqual(['changed a']);
});

test('lists grow at the end and lose their beginning', () => {
  expect(told([1, 2], [1, 2, 3])).toEqual(['added 2']);
  expect(told([1, 2, 3], [2, 3])).toEqual(['removed 0']);
  expect(told([{ x: 1 }, { x: 2 }], [{ x: 1 }, { x: 3 }])).toEqual(['changed 1.x']);
  expect(told([1, 2], [2, 3])).toEqual(['changed 0', 'changed 1']);
});

test('there is an end to it', () => {
  const many = Object.fromEntries(Array.from({ length: MOST * 3 }, (_, index) => [`k${index}`, { v: 1 }]));
  const other = Object.fromEntries(Object.keys(many).map((key) => [key, { v: 2 }]));
  expect(changes(many, other)).toHaveLength(MOST + 1);
});
