import { expect, test } from 'vitest';
import type { Event } from '$lib/api/types';
import { Feed } from './feed';

function event(sequence: number, cause: number | null = null): Event {
  return {
    event_id: `e-${sequence}`,
    causation_id: cause === null ? null : `e-${cause}`,
    sequence,
    position: 0,
    type: sequence % 2 ? 'kairo.tool.result.v1' : 'kairo.agent.action.v1',
    payload: {},
  } as unknown as Event;
}

const many = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => event(from + index));

test('what was received is kept or folded', () => {
  const feed = new Feed(100);
  for (let at = 0; at < 1000; at += 7) {
    feed.push(many(at, Math.min(at + 7, 1000)));
    expect(feed.received).toBe(feed.kept + feed.folded);
    expect(feed.kept).toBeLessThanOrEqual(100);
  }
  expect(feed.received).toBe(1000);
  expect(feed.shown.at(-1)?.sequence).toBe(999);
  expect(feed.find('e-0')).toBeUndefined();
  expect(feed.find('e-999')).toBeDefined();
});

test('what a filter shows is the same, whether it was there before', () => {
  const odd = ({ sequence }: Event) => sequence % 2 === 1;
  const before = new Feed(50);
  before.filter(odd);
  before.push(many(0, 120));
  const after = new Feed(50);
  after.push(many(0, 120));
  after.filter(odd);
  expect(after.shown).toEqual(before.shown);
  expect(before.passed).toBe(60);
  expect(before.passed).toBe(before.before + before.shown.length);
});

test('effects are what names an event as its cause', () => {
  const feed = new Feed();
  feed.push([event(1), event(2, 1), event(3, 1), event(4, 2)]);
  expect(feed.effects('e-1').map(({ sequence }) => sequence)).toEqual([2, 3]);
});

test('what is older goes in front, once, and moves nothing of what is counted', () => {
  const feed = new Feed(100);
  feed.filter(({ sequence }) => sequence % 2 === 1);
  feed.push(many(50, 60));
  const { passed, before } = feed;
  expect(feed.unshift(many(40, 52))).toBe(true);
  expect(feed.first?.sequence).toBe(40);
  expect(feed.received).toBe(20);
  expect([feed.passed, before - feed.before]).toEqual([passed, 5]);
  expect(feed.shown.map(({ sequence }) => sequence)).toEqual([41, 43, 45, 47, 49, 51, 53, 55, 57, 59]);
  expect(feed.unshift(many(-100, 40))).toBe(false);
  expect(feed.received).toBe(20);
});
