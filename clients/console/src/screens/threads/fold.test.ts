import { expect, test } from 'vitest';
import type { ChainStepRow, ThreadEventRow } from '$lib/api/types';
import { field, filledIn, groups, sorted, told } from './fold';

const step = (step: number, group: number) => ({ step, group }) as ChainStepRow;
const event = (event: string, result: unknown) => ({ event, result }) as ThreadEventRow;

test('steps of a group stand together, groups in their order', () => {
  const found = groups([step(0, 0), step(1, 0), step(2, 2), step(3, 1)]);
  expect(found.map((group) => group.map(({ step }) => step))).toEqual([[0, 1], [3], [2]]);
});

test('a field counts as filled in when it is another than was written', () => {
  expect(filledIn({ to: '{a.b[0]}', at: 3 }, { to: 'ann', at: 3 })).toEqual(['to']);
  expect(filledIn({ a: 1 }, { a: 1, b: 2 })).toEqual(['b']);
  expect(filledIn({ a: 1 }, null)).toEqual([]);
});

test('what was summed up and what was learned is found among the events', () => {
  const events = [
    event('user.input', 'hello'),
    event('thread.compacted', { summary: 'much' }),
    event('memory.append', { memory_id: 'm', content: 'a' }),
    event('memory.search', { matches: [] }),
  ];
  const found = sorted(events);
  expect(found.compactions).toEqual([events[1]]);
  expect(found.knowledge).toEqual([events[2]]);
});

test('what an event says is its text', () => {
  expect(told(event('user.input', 'hello'))).toBe('hello');
  expect(told(event('chain.ended', { text: 'done' }))).toBe('done');
  expect(told(event('tools.now', null))).toBe('');
  expect(field({ entries: 3 }, 'entries')).toBe('3');
});
