import { expect, test } from 'vitest';
import { rows, towards } from './window';

test('only what is seen and a little more is drawn', () => {
  const { first, end } = rows(20_000, 300_000, 600, 30);
  expect(first).toBeLessThanOrEqual(10_000);
  expect(end).toBeGreaterThanOrEqual(10_020);
  expect(end - first).toBeLessThan(60);
  expect(rows(3, 0, 600, 30)).toEqual({ first: 0, end: 3 });
  expect(rows(0, 900, 600, 30)).toEqual({ first: 0, end: 0 });
});

test('a list is scrolled no farther than it must be', () => {
  expect(towards(5, 0, 600, 30)).toBe(0);
  expect(towards(5, 300, 600, 30)).toBe(150);
  expect(towards(50, 0, 600, 30)).toBe(930);
});
