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
