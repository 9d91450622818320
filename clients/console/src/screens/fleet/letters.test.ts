import type { Event } from '$lib/api/types';
import { expect, test } from 'vitest';
import { letterOf } from './letters';

test('a letter says where it is, and its first bytes as text', () => {
  const payload = { consumer: 'router-events', stream: 'KAIRO_EVENTS', sequence: '42', subject: 'kairo.user.ann.message', reason: 'no', head: btoa('h\u00ff!') };
  const letter = letterOf({ event_id: 'e', ts: 't', payload } as unknown as Event);
  expect(letter.place).toBe('KAIRO_EVENTS 42');
  expect(letter.head).toBe('h\ufffd!');
  expect(letterOf({ event_id: 'e', ts: 't', payload: { head: '%%' } } as unknown as Event).head).toBe('%%');
});

test('a letter knows its retry, and whether it can have one', () => {
  const event = (consumer: string, head: string) => ({ event_id: 'e', ts: 't', sequence: 7, payload: { consumer, head: btoa(head) } }) as unknown as Event;
  const retry = { letter: 7, retry_id: 'r', asked_at: 't', outcome: 'failed' as const, reason: 'away' };
  const letter = letterOf(event('router', '{"text": "hi"}'), [{ ...retry, letter: 6 }, retry]);
  expect([letter.number, letter.canRetry, letter.retry?.reason, letter.json]).toEqual([7, true, 'away', { text: 'hi' }]);
  expect([letterOf(event('projector', 'x')).canRetry, letterOf(event('projector', 'x')).json]).toEqual([false, undefined]);
});
