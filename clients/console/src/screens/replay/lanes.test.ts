import { expect, test } from 'vitest';
import { branches, deeds, messagesOf, wantedOf, worst, type Reached, type Remade } from './lanes';

test('a request is told by its messages, with calls and tools', () => {
  const request = {
    messages: [
      { role: 'system', text: 'Be brief.' },
      { role: 'user', text: 'look', parts: [{ media_type: 'image/png', name: 'a.png' }] },
      { role: 'assistant', text: '', calls: [{ id: '1', tool: 'tools.now', arguments: '{}' }] },
    ],
    tools: [{ name: 'tools.now' }, { name: 'mail.send' }],
  };
  expect(messagesOf(request).map(({ role, text }) => `${role}: ${text}`)).toEqual([
    'system: Be brief.',
    'user: look\n[image/png a.png]',
    'assistant: tools.now {}',
    'tools: tools.now, mail.send',
  ]);
  expect(messagesOf({})).toEqual([]);
});

test('a decision is told by what it does', () => {
  const events = [
    { event_id: 'e', thought: { text: 'hm' } },
    { event_id: 'f', action: { tool_call: { tool: 'tools.now', arguments: '{}' } } },
    { event_id: 'g', action: { say: { text: 'hello' } } },
    { event_id: 'h', thread_closed: {} },
  ];
  expect(deeds({ events })).toEqual(['thought hm', 'action tools.now {}', 'action hello', 'thread_closed']);
  expect(deeds(undefined)).toEqual([]);
});

test('what nobody wrote changes nothing', () => {
  const limits = { max_steps: '3', chain_steps: ' ' };
  expect(wantedOf('own', 'own', limits, { from: '', to: '9' })).toEqual({ limits: { max_steps: 3 }, to: 9 });
  expect(wantedOf('other', 'own', {}, { from: '', to: '' })).toEqual({ prompt: 'other' });
});

test('what is worst is told first', () => {
  const of = (...outcomes: Remade['outcome'][]) => worst(outcomes.map((outcome) => ({ sequence: 1, outcome, input_id: '' })));
  expect([of('same', 'drifted', 'same'), of('same'), of()]).toEqual(['drifted', 'same', null]);
});

test('a cone is a tree in the order of the log', () => {
  const reached = (sequence: number, because?: number) => ({ sequence, subject: '', type: '', fate: 'unknown', ...(because !== undefined && { because }) }) as Reached;
  const lines = branches([reached(3), reached(4, 3), reached(7, 3), reached(9, 4), reached(12, 99)]);
  expect(lines.map(({ reached: { sequence }, depth }) => [sequence, depth])).toEqual([[3, 0], [4, 1], [9, 2], [7, 1], [12, 0]]);
});
