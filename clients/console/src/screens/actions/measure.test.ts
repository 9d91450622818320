import { expect, test } from 'vitest';
import type { ActionRow, Event, Output, ProcessRow } from '$lib/api/types';
import { isNeverBegun, MOST_KEPT, stopOf, stopOfProcess, unseen, usual, Written } from './measure';

const row = (fields: Partial<ActionRow>) => ({ status: 'done', ended_at: null, cancel_requested_at: null, duration_ms: null, tool: 'http.get', ...fields }) as ActionRow;
const process = (fields: Partial<ProcessRow>) => ({ ended_at: null, started_at: 'x', cancel_requested_at: null, outcome: null, ...fields }) as ProcessRow;

test('what is usual of a tool is that of its calls that were done', () => {
  const done = Array.from({ length: 100 }, (_, index) => row({ duration_ms: 100 - index }));
  const others = [row({ tool: 'tools.now', duration_ms: 3 }), row({ status: 'timed_out', duration_ms: 60_000 })];
  expect(Object.fromEntries(usual([...done, ...others]))).toEqual({ 'http.get': { p95: 95, count: 100 }, 'tools.now': { p95: 3, count: 1 } });
});

test('a stop says whether it never began, was stopped, or was over already', () => {
  const asked = { cancel_requested_at: 'x' };
  const ended = { ended_at: 'y' };
  expect(stopOf(row({ status: 'running' }), false, false)).toBe('none');
  expect(stopOf(row({ status: 'running' }), false, true)).toBe('asked');
  expect(stopOf(row({ status: 'canceled', ...asked, ...ended }), true, false)).toBe('never');
  expect(stopOf(row({ status: 'canceled', ...asked, ...ended }), false, false)).toBe('stopped');
  expect(stopOf(row({ ...ended }), false, true)).toBe('over');
  expect(stopOf(row({ status: 'in_doubt', ...asked, ...ended }), false, false)).toBe('doubt');
  expect(stopOf(row({ ...ended }), false, false)).toBe('none');
  expect(stopOfProcess(process({ outcome: 'canceled', ...ended }), false)).toBe('stopped');
  expect(stopOfProcess(process({ outcome: 'canceled', started_at: null, ...ended }), false)).toBe('never');
  expect(stopOfProcess(process({ outcome: 'exited', ...ended, ...asked }), false)).toBe('over');
});

test('whether anybody began an action is what its invocation says', () => {
  const invoke = (action_id: string, executor: string) => ({ type: 'kairo.tool.invoke.v1', payload: { action_id, executor } }) as unknown as Event;
  expect(isNeverBegun([invoke('a', 'nobody'), invoke('b', 'tool-runner')], 'a')).toBe(true);
  expect(isNeverBegun([invoke('a', 'nobody'), invoke('b', 'tool-runner')], 'b')).toBe(false);
});

const piece = (sequence: number, text: string, stream = 'stdout') => ({ stream, text, ...(sequence > 0 && { sequence: String(sequence) }) }) as Output;

test('pieces that are missing are counted where they are missing, and none is shown twice', () => {
  const written = new Written();
  for (const one of [piece(0, 'a'), piece(1, 'b'), piece(1, 'b'), piece(4, 'c'), piece(5, 'd', 'stderr')]) written.take(one);
  expect(written.pieces).toEqual([
    { stream: 'stdout', text: 'ab', missing: 0 },
    { stream: 'stdout', text: 'c', missing: 2 },
    { stream: 'stderr', text: 'd', missing: 0 },
  ]);
});

test('of much the end is kept, and what is gone is counted', () => {
  const written = new Written();
  written.take(piece(0, 'x'.repeat(MOST_KEPT)));
  written.take(piece(1, 'yz', 'stderr'));
  expect(written.cut).toBe(2);
  expect(written.pieces.map(({ text }) => text.length)).toEqual([MOST_KEPT - 2, 2]);
});

test('what a tail leaves out is counted in bytes', () => {
  expect(unseen('é', 10)).toBe(8);
  expect(unseen(null, null)).toBe(0);
});
