import type { Event } from '$lib/api/types';
import { expect, test } from 'vitest';
import { graphOf, turnsOf } from './layout';

function event(id: string, cause: string | null, subject: string, type: string, ms: number, payload: Record<string, unknown> = {}): Event {
  const ts = new Date(Date.UTC(2026, 0, 1) + ms).toISOString();
  return { event_id: id, causation_id: cause, subject, type: `kairo.${type}.v1`, ts, payload, correlation_id: 'turn', sequence: ms, position: 0 } as unknown as Event;
}

const TURN = [
  event('said', null, 'kairo.user.ann.message', 'user.message', 0),
  event('delivered', 'said', 'kairo.agent.lead.message', 'agent.message', 10),
  event('call', 'delivered', 'kairo.agent.lead.decision', 'agent.action', 60),
  event('other', 'delivered', 'kairo.agent.lead.decision', 'agent.action', 60),
  event('began', 'call', 'kairo.tool.lead.invoke', 'tool.invoke', 70),
  event('half', 'began', 'kairo.tool.lead.progress', 'tool.progress', 80),
  event('whole', 'began', 'kairo.tool.lead.progress', 'tool.progress', 90),
  event('worker', 'other', 'kairo.agent.worker.message', 'agent.message', 95),
  event('came', 'began', 'kairo.tool.lead.result', 'tool.result', 100),
  event('answer', 'came', 'kairo.agent.lead.decision', 'agent.action', 150, { final: true, message_id: 'm' }),
  event('later', 'worker', 'kairo.agent.worker.decision', 'agent.action', 900),
];

test('what the answer waited for is the critical path', () => {
  const { nodes, took } = graphOf(TURN);
  const critical = nodes.filter((node) => node.critical).map((node) => node.event.event_id);
  expect(critical).toEqual(['said', 'delivered', 'call', 'began', 'came', 'answer']);
  expect(took).toBe(150);
});

test('each has its lane, its cause and the time from there', () => {
  const { nodes, lanes, roots } = graphOf(TURN);
  expect(lanes).toEqual(['user', 'mind', 'tool', '@worker']);
  expect(roots.map((node) => node.event.event_id)).toEqual(['said']);
  const came = nodes.find((node) => node.event.event_id === 'came')!;
  expect([came.cause?.event.event_id, came.wait, came.lane]).toEqual(['began', 30, 'tool']);
  expect(nodes.find((node) => node.event.event_id === 'worker')!.lane).toBe('@worker');
});

test('reports of progress are counted where they belong', () => {
  const began = graphOf(TURN).nodes.find((node) => node.event.event_id === 'began')!;
  expect(began.reports).toBe(2);
  expect(began.report?.event_id).toBe('whole');
  expect(began.effects.map((node) => node.event.event_id)).toEqual(['came']);
});

test('what was caused elsewhere stands by itself, and what comes twice once', () => {
  const { nodes, roots } = graphOf([TURN[2]!, TURN[2]!]);
  expect(nodes).toHaveLength(1);
  expect(roots[0]!.wait).toBeNull();
  expect(graphOf([])).toEqual({ nodes: [], roots: [], lanes: [], took: 0 });
});

test('turns are listed once, the newest first, without what services say', () => {
  const other = { ...TURN[0]!, correlation_id: 'next' };
  const system = { ...TURN[0]!, correlation_id: 'system', subject: 'kairo.system.projector.positions' };
  expect(turnsOf([...TURN, system, other]).map(({ id, events }) => [id, events])).toEqual([['next', 1], ['turn', TURN.length]]);
});

test('what names the message of a decision is found by what it answers or begins', () => {
  const { nodes } = graphOf([
    event('queued', null, 'kairo.agent.lead.decision', 'task.scheduled', 0, { task: { task_id: 't' } }),
    event('opened', 'message-1', 'kairo.agent.lead.decision', 'thread.created', 10),
    { ...event('begun', 'message-1', 'kairo.agent.lead.decision', 'task.started', 10, { task_id: 't' }), position: 1 },
    { ...event('ask', 'message-1', 'kairo.agent.lead.decision', 'agent.action', 10, { type: 'ask' }), position: 2 },
    event('request', 'message-2', 'kairo.agent.worker.request', 'agent.request', 20, { request_id: 'ask' }),
    event('ended', 'request', 'kairo.agent.worker.decision', 'task.ended', 30, { answer: { request_id: 'ask' } }),
    event('reply', 'message-3', 'kairo.agent.lead.answer', 'agent.answer', 40, { request_id: 'ask' }),
    event('learnt', 'message-4', 'kairo.agent.lead.decision', 'memory.appended', 50),
    { ...event('said', 'message-4', 'kairo.agent.lead.decision', 'agent.action', 50), position: 1 },
  ]);
  const causes = Object.fromEntries(nodes.map(({ event, cause }) => [event.event_id, cause?.event.event_id ?? '']));
  expect(causes).toEqual({ queued: '', opened: 'queued', begun: 'queued', ask: 'queued', request: 'ask', ended: 'request', reply: 'ended', learnt: 'opened', said: 'opened' });
  expect(nodes.filter(({ presumed }) => presumed).map(({ event }) => event.event_id)).toEqual(['learnt', 'said']);
});
