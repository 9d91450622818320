import { expect, test } from 'vitest';
import { NOTHING, take, type Shown } from './forking';

const after = (...events: [string, unknown][]): Shown => events.reduce((shown, [name, told]) => take(shown, name, told), NOTHING);

test('what is said and where answers are from stands in its order', () => {
  const { lines, resting } = after(
    ['message', { type: 'kairo.user.message.v1', payload: { text: 'hi' } }],
    ['fork.answered', { answered: 'model', tier: 'heavy', answer: { from: 'not_asked', why: 'too dear' } }],
    ['message', { type: 'kairo.agent.action.v1', payload: { type: 'say', text: 'hello' } }],
    ['message', { type: 'kairo.agent.turn.v1', payload: {} }],
    ['fork.at_rest', { now: '' }],
  );
  expect(lines).toEqual([
    { kind: 'said', who: 'you', text: 'hi' },
    { kind: 'answered', what: 'heavy', from: 'not_asked', why: 'too dear' },
    { kind: 'said', who: 'agent', text: 'hello' },
  ]);
  expect(resting).toBe(true);
});

test('a call waits until all is at rest, and nothing waits behind the end', () => {
  const asked = after(['fork.asked', { question: 1, tool: 'book', arguments: { day: 1 } }]);
  expect(asked.questions).toEqual([{ question: 1, tool: 'book', arguments: { day: 1 } }]);
  expect(take(asked, 'fork.at_rest', {}).questions).toEqual([]);
  expect(take(asked, 'fork.ended', { why: 'it was ended' })).toMatchObject({ questions: [], ended: 'it was ended' });
});

const asks = (id: string, chain: string) =>
  [
    'message',
    {
      type: 'kairo.agent.approval_requested.v1',
      event_id: id,
      subject: 'kairo.agent.cook.decision',
      ts: '2026-01-01T00:00:00Z',
      payload: { tool: 'email.send', arguments: '{"to":"ann"}', chain_id: chain, step: 0, user: 'ann' },
    },
  ] as [string, unknown];

test('a call waits for consent until there is a verdict, or its chain is over', () => {
  const asked = after(asks('a', 'c'), asks('b', 'd'), ['fork.at_rest', {}]);
  expect(asked.consents.map((row) => [row.action_id, row.agent, row.arguments])).toEqual([
    ['a', 'cook', { to: 'ann' }],
    ['b', 'cook', { to: 'ann' }],
  ]);
  const answered = take(asked, 'message', { type: 'kairo.user.approval.v1', payload: { action_id: 'a', verdict: 'approved' } });
  expect(answered.consents.map(({ action_id }) => action_id)).toEqual(['b']);
  expect(take(answered, 'message', { type: 'kairo.chain.ended.v1', payload: { chain_id: 'd' } }).consents).toEqual([]);
  expect(take(asked, 'fork.ended', { why: 'it was ended' }).consents).toEqual([]);
});

test('the next timer is known while all is at rest', () => {
  const resting = after(['fork.at_rest', { now: '2026-01-01T00:00:00Z', next_timer: '2026-01-01T02:00:00Z' }]);
  expect(resting.nextTimer).toBe('2026-01-01T02:00:00Z');
  expect(take(resting, 'message', {}).nextTimer).toBe('');
  expect(take(resting, 'fork.at_rest', { next_timer: null }).nextTimer).toBe('');
});

test('what is not as expected is passed over', () => {
  expect(after(['message', null], ['message', 'x']).lines).toEqual([]);
});
