import { expect, test } from 'vitest';
import { bars, valueOf, type UsageRow } from './rows';

function row(fields: Partial<UsageRow>): UsageRow {
  return { calls: 1, failed: 0, input_tokens: 0, output_tokens: 0, latency_ms: 0, cost: '0.10', ...fields } as UsageRow;
}

test('days without anything have their place, and the highest is the measure', () => {
  const found = bars([row({ day: '2026-02-28', input_tokens: 30, output_tokens: 10 }), row({ day: '2026-03-02', input_tokens: 60, output_tokens: 20 })]);
  expect(found.map(({ day }) => day)).toEqual(['2026-02-28', '2026-03-01', '2026-03-02']);
  expect(found.map(({ inputPart, outputPart }) => [inputPart, outputPart])).toEqual([[0.375, 0.125], [0, 0], [0.75, 0.25]]);
  expect(bars([])).toEqual([]);
});

test('of many days the newest are shown', () => {
  const found = bars([row({ day: '2020-01-01' }), row({ day: '2026-03-02', input_tokens: 1 })], 5);
  expect(found.map(({ day }) => day)).toEqual(['2026-02-26', '2026-02-27', '2026-02-28', '2026-03-01', '2026-03-02']);
});

test('what a row is of', () => {
  expect(valueOf(row({ thread_id: 't' }), 'thread')).toBe('t');
  expect(valueOf(row({ agent: 'a' }), 'agent')).toBe('a');
  expect(valueOf(row({}), 'user')).toBeNull();
});
