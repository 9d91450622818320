import { expect, test } from 'vitest';
import type { TaskRow } from '$lib/api/types';
import { upcoming } from './times';
import { momentOf, offsetOf, wallOf } from './zones';

const task = (fields: Partial<TaskRow>) =>
  ({ type: 'repeat', next_at: null, ended_at: null, cron: null, rrule: null, interval: null, at: null, time_zone: null, ...fields }) as TaskRow;
const times = (fields: Partial<TaskRow>, count = 5) => upcoming(task(fields), count).map((moment) => new Date(moment).toISOString().replace(':00.000Z', 'Z'));

test('a clock is read in its zone, in the gap and in the fold', () => {
  const berlin = 'Europe/Berlin';
  expect(offsetOf(Date.parse('2026-01-01T00:00:00Z'), berlin)).toBe(3_600_000);
  expect(wallOf(Date.parse('2026-07-01T10:00:00.250Z'), berlin)).toBe(Date.parse('2026-07-01T12:00:00.250Z'));
  // 02:30 does not happen: the first moment after the gap.
  expect(new Date(momentOf(Date.parse('2026-03-29T02:30:00Z'), berlin)).toISOString()).toBe('2026-03-29T01:00:00.000Z');
  // 02:30 happens twice: the first.
  expect(new Date(momentOf(Date.parse('2026-10-25T02:30:00Z'), berlin)).toISOString()).toBe('2026-10-25T00:30:00.000Z');
  expect(new Date(momentOf(Date.parse('2026-06-01T02:30:00Z'), 'UTC')).toISOString()).toBe('2026-06-01T02:30:00.000Z');
});

test('cron goes by the clock of its zone, across the change of clocks', () => {
  const daily = { cron: '30 9 * * *', time_zone: 'Europe/Berlin', next_at: '2026-03-27T08:30:00Z' };
  expect(times(daily, 4)).toEqual(['2026-03-27T08:30Z', '2026-03-28T08:30Z', '2026-03-29T07:30Z', '2026-03-30T07:30Z']);
});

test('a rule of days goes by the wall clock, too', () => {
  const weekly = { rrule: 'FREQ=WEEKLY;BYDAY=MO', at: '2026-10-19T09:00:00', time_zone: 'America/New_York', next_at: '2026-10-26T13:00:00Z' };
  expect(times(weekly, 3)).toEqual(['2026-10-26T13:00Z', '2026-11-02T14:00Z', '2026-11-09T14:00Z']);
  expect(times({ ...weekly, rrule: 'RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=2' })).toEqual(['2026-10-26T13:00Z']);
  expect(times({ ...weekly, rrule: 'FREQ=WEEKLY;BYDAY=MO;UNTIL=20261102T140000Z' })).toEqual(['2026-10-26T13:00Z', '2026-11-02T14:00Z']);
});

test('steps of hours do not mind the clock', () => {
  const hourly = { rrule: 'FREQ=HOURLY;INTERVAL=12', at: '2026-03-28T12:00:00', time_zone: 'Europe/Berlin', next_at: '2026-03-28T23:00:00Z' };
  expect(times(hourly, 3)).toEqual(['2026-03-28T23:00Z', '2026-03-29T11:00Z', '2026-03-29T23:00Z']);
  expect(times({ interval: '5400s', next_at: '2026-03-29T00:30:00Z' }, 3)).toEqual(['2026-03-29T00:30Z', '2026-03-29T02:00Z', '2026-03-29T03:30Z']);
});

test('a time of every day', () => {
  const daily = { at: '02:30', time_zone: 'Europe/Berlin', next_at: '2026-03-28T01:30:00Z' };
  expect(times(daily, 3)).toEqual(['2026-03-28T01:30Z', '2026-03-29T01:00Z', '2026-03-30T00:30Z']);
});

test('where another time comes out than the gateway says, its time alone is shown', () => {
  const next_at = '2026-03-27T08:31:00Z';
  for (const how of [{ cron: '30 9 * * *' }, { cron: 'nonsense' }, { rrule: 'FREQ=HOURLY;BYHOUR=3', at: '2026-01-01T00:00:00' }, { rrule: 'X', at: 'y' }]) {
    expect(times({ ...how, time_zone: 'Europe/Berlin', next_at })).toEqual(['2026-03-27T08:31Z']);
  }
  expect(times({ interval: 'soon', next_at })).toEqual(['2026-03-27T08:31Z']);
  expect(times({ cron: '30 9 * * *', time_zone: 'Nowhere/Land', next_at })).toEqual(['2026-03-27T08:31Z']);
});

test('what is over, or comes once, has no more times', () => {
  expect(times({ next_at: '2026-03-27T08:30:00Z', ended_at: 'x', interval: '60s' })).toEqual([]);
  expect(times({ type: 'once', next_at: '2026-03-27T08:30:00Z' })).toEqual(['2026-03-27T08:30Z']);
  expect(times({})).toEqual([]);
});
