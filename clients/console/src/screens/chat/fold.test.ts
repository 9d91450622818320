import { expect, test } from 'vitest';
import type { Event } from '$lib/api/types';
import { Conversation, type Doing, type Said, type Words } from './fold';

let sequence = 0;

function event(type: string, turn: string, payload: Record<string, unknown>, tags: string[] = []): Event {
  sequence += 1;
  const ts = new Date(1_700_000_000_000 + sequence * 1000).toISOString();
  const subject = 'kairo.agent.cook.x';
  return { event_id: `e-${sequence}`, ts, source: 'internal', modality: 'text', payload, meta: { tags }, type: `kairo.${type}.v1`, sequence, position: 0, subject, correlation_id: turn, causation_id: null, thread_id: null, entered_by: null };
}

const decided = (type: string, turn: string, payload: Record<string, unknown>) => event(type, turn, payload, ['decision', 'x']);
const message = (id: string, turn: string) => [
  event('user.message', turn, { message_id: id, user: 'ann', agent: 'cook', text: id }),
  event('agent.message', turn, { message_id: id, user: 'ann', text: id }),
];
const says = (turn: string, id: string, final: boolean, text: string) =>
  decided('agent.action', turn, { type: 'say', text, user: 'ann', message_id: id, final });

function folded(events: Event[]): Conversation {
  const conversation = new Conversation('cook', 'ann');
  for (const event of events) conversation.take(event);
  return conversation;
}

const said = (conversation: Conversation) => conversation.items.filter((item): item is Said => item.kind === 'said');

test('a message goes from accepted to delivered to decided', () => {
  const [accepted, delivered] = message('m-1', 't-1');
  const conversation = folded([accepted!]);
  expect(said(conversation)[0]?.stage).toBe('accepted');
  expect(conversation.deciding).toBe(false);
  conversation.take(delivered!);
  expect(said(conversation)[0]?.stage).toBe('delivered');
  expect(conversation.deciding).toBe(true);
  conversation.take(says('t-1', 'm-1', true, 'yes'));
  expect(said(conversation)[0]?.stage).toBe('decided');
  expect(conversation.deciding).toBe(false);
});

test('what is sent is shown at once and is one with what comes back', () => {
  const conversation = new Conversation('cook', 'ann');
  conversation.say('m-1', 'hello', '2026-01-01T00:00:00Z');
  conversation.fail('m-1', 'no gateway');
  expect(said(conversation)[0]).toMatchObject({ stage: 'failed', reason: 'no gateway' });
  conversation.say('m-1', 'hello', '2026-01-01T00:00:00Z');
  for (const event of message('m-1', 't-1')) conversation.take(event);
  conversation.accept('m-1');
  expect(said(conversation)).toHaveLength(1);
  expect(said(conversation)[0]).toMatchObject({ stage: 'delivered', reason: '' });
  expect(said(conversation)[0]?.at).not.toBe('2026-01-01T00:00:00Z');
});

test('the same events, some of them twice, give the same', () => {
  const events = [...message('m-1', 't-1'), says('t-1', 'm-1', true, 'yes')];
  expect(folded([...events, ...events]).items).toEqual(folded(events).items);
});

test('words on the way, the answer, and words that nobody asked for are told apart', () => {
  const conversation = folded([
    ...message('m-1', 't-1'),
    says('t-1', 'm-1', false, 'a moment'),
    says('t-1', 'm-1', true, 'done'),
    says('t-1', 'm-1', true, 'by the way'),
    says('t-2', '', true, 'the job is over'),
    says('t-3', '', false, 'a reminder'),
  ]);
  const manners = conversation.items.filter((item): item is Words => item.kind === 'words').map(({ manner }) => manner);
  expect(manners).toEqual(['way', 'answer', 'unasked', 'unasked', 'unasked']);
});

test('an action that was stopped before it began never begins, and one that ran says how it ended', () => {
  const asked = message('m-1', 't-1');
  const call = decided('agent.action', 't-1', { type: 'tool_call', tool: 'process.run', args: {} });
  const begin = [...asked, call];
  const invoke = (executor: string) => event('tool.invoke', 't-1', { action_id: call.event_id, executor });
  const result = (fields: object) => event('tool.result', 't-1', { action_id: call.event_id, ...fields });
  const stage = (events: Event[]) => folded([...begin, ...events]).items.find((item): item is Doing => item.kind === 'doing')?.stage;
  expect(stage([])).toBe('asked');
  expect(stage([invoke('nobody'), result({ ok: false, error: 'canceled' })])).toBe('never');
  expect(stage([invoke('tool-runner')])).toBe('running');
  expect(stage([invoke('tool-runner'), result({ ok: true })])).toBe('done');
  expect(stage([invoke('tool-runner'), result({ ok: false, error: 'canceled' })])).toBe('stopped');
  expect(stage([invoke('tool-runner'), result({ ok: false, error: 'in_doubt' })])).toBe('doubt');
  expect(folded([...begin, invoke('tool-runner')]).running).toHaveLength(1);
});

test('a process in the background goes on when its action is over', () => {
  const asked = message('m-1', 't-1');
  const call = decided('agent.action', 't-1', { type: 'tool_call', tool: 'process.spawn', args: {} });
  const about = { action_id: call.event_id, process_id: 'p-1' };
  const conversation = folded([
    ...asked,
    call,
    event('tool.invoke', 't-1', { ...about, executor: 'process-supervisor' }),
    event('process.spawned', 't-1', { ...about, background: true }),
    event('tool.result', 't-1', { ...about, ok: true }),
  ]);
  expect(conversation.running).toMatchObject([{ processId: 'p-1', background: true, stage: 'running' }]);
  conversation.output({ agent: 'cook', correlation_id: 't-1', process_id: 'p-1', action_id: call.event_id, stream: 'stdout', text: 'one\ntwo\n' });
  expect(conversation.running[0]?.last).toBe('two');
  conversation.take(event('process.canceled', 't-1', about));
  expect(conversation.running[0]?.stage).toBe('stopping');
  conversation.take(event('process.exited', 't-1', { ...about, outcome: 'canceled' }));
  expect(conversation.running).toEqual([]);
});

test('a draft is there until what it becomes is decided', () => {
  const conversation = folded(message('m-1', 't-1'));
  const piece = (text: string, index: number) => conversation.token({ agent: 'cook', correlation_id: 't-1', text, index });
  piece('So', 0);
  piece('up', 1);
  expect(conversation.drafts).toMatchObject([{ text: 'Soup', reasoning: '' }]);
  piece('Another', 0);
  expect(conversation.drafts).toMatchObject([{ text: 'Another', reasoning: '' }]);
  conversation.take(says('t-1', 'm-1', true, 'Another'));
  expect(conversation.drafts).toEqual([]);
});

test('what was written before anybody listened is the beginning of a draft, unless it is decided on', () => {
  const conversation = folded(message('m-1', 't-1'));
  const piece = (call_id: string, text: string, index: number) =>
    conversation.token({ agent: 'cook', correlation_id: 't-1', call_id, text, index });
  piece('c-1', 'Soup is', 7);
  piece('c-1', ' good', 8);
  expect(conversation.drafts).toMatchObject([{ text: 'Soup is good' }]);
  conversation.listens();
  piece('c-1', 'Soup is good', 8);
  piece('c-1', '.', 9);
  expect(conversation.drafts).toMatchObject([{ text: 'Soup is good.' }]);
  piece('c-2', 'Yes', 0);
  expect(conversation.drafts).toMatchObject([{ text: 'Yes' }]);
  conversation.take(says('t-1', 'm-1', true, 'Yes'));
  piece('c-2', 'Yes', 3);
  expect(conversation.drafts).toEqual([]);
});

test('a draft that is faster than the log is shown from its beginning', () => {
  const conversation = folded([]);
  const piece = (turn: string, text: string, index: number) => conversation.token({ agent: 'cook', correlation_id: turn, call_id: 'c-1', text, index });
  ['Once ', 'upon ', 'a '].forEach((text, index) => piece('t-1', text, index));
  piece('t-2', 'Once', 0);
  expect(conversation.drafts).toEqual([]);
  message('m-1', 't-1').forEach((told) => conversation.take(told));
  piece('t-1', 'time', 3);
  expect(conversation.drafts.map(({ text }) => text)).toEqual(['Once upon a time']);
  // One that is decided by the time that it is told of.
  conversation.take(says('t-2', 'm-2', false, 'Once'));
  message('m-2', 't-2').forEach((told) => conversation.take(told));
  for (let turn = 3; turn < 100; turn += 1) piece(`t-${turn}`, 'Once', 0);
  message('m-3', 't-3').forEach((told) => conversation.take(told));
  message('m-99', 't-99').forEach((told) => conversation.take(told));
  expect(conversation.drafts.map(({ text }) => text)).toEqual(['Once upon a time', 'Once']);
});

test('what others say to the agent is not shown, but keeps it busy', () => {
  const conversation = folded([event('agent.message', 't-9', { message_id: 'm-9', user: 'joe', text: 'secret' })]);
  expect(conversation.items).toEqual([]);
  expect(conversation.deciding).toBe(true);
});

test('an order to stop shows what becomes of it', () => {
  const told = message('m-1', 't-1');
  const asks = decided('agent.action', 't-1', { type: 'call', tool: 'web.fetch', args: {} });
  const stop = event('user.command', 'o-1', { command_id: 'c', user: 'ann', agent: 'cook', command: 'cancel', action_id: asks.event_id });
  const doing = (events: Event[]) => folded(events).items.find((item): item is Doing => item.kind === 'doing');
  const begun = [...told, asks, stop];
  expect(doing(begun)).toMatchObject({ stage: 'stopping', refusal: '' });
  const refusal = event('agent.failed', 'o-1', { kind: 'unknown_action', text: 'no such action' });
  expect(doing([...begun, refusal])).toMatchObject({ stage: 'running', refusal: 'no such action' });
  const done = event('tool.result', 't-1', { action_id: asks.event_id, ok: true });
  const late = event('agent.failed', 'o-1', { kind: 'unknown_action', text: 'no such action' });
  expect(doing([...begun, done, late])).toMatchObject({ stage: 'done', refusal: 'no such action' });
  const conversation = folded(begun);
  conversation.refuse(asks.event_id, 'not yours');
  expect(conversation.running[0]).toMatchObject({ stage: 'running', refusal: 'not yours' });
});

test('what is said belongs to the thread of its turn, once that is known', () => {
  const conversation = folded([...message('m-1', 't-1'), ...message('m-2', 't-2')]);
  expect(conversation.threads).toEqual([]);
  conversation.take({ ...says('t-2', 'm-2', true, 'yes'), thread_id: 'dinner' });
  conversation.take({ ...says('t-1', 'm-1', true, 'yes'), thread_id: 'dentist' });
  expect(conversation.threads).toEqual(['dentist', 'dinner']);
  expect(conversation.items.filter((item) => conversation.threadOf(item) === 'dinner').map(({ kind }) => kind)).toEqual(['said', 'words']);
});
