import { expect, test } from 'vitest';
import type { ApprovalRow, ChainRow, ChainStepRow, ConsentRow, OfferRow } from '$lib/api/types';
import { afterwards, items } from './items';

const asked = (id: string, at: string) =>
  ({ action_id: id, agent: 'cook', tool: 'email.send', arguments: {}, requested_at: at, outside: [], user: 'ann', step: 0 }) as unknown as ApprovalRow;
const consent = (id: string, at: string, status: ConsentRow['status']) => ({ ...asked(id, at), status, decided_by: 'ben' }) as ConsentRow;
const offer = (id: string, at: string) => ({ offer_id: id, offered_at: at }) as OfferRow;

test('what was decided elsewhere meanwhile no longer waits, and nothing is there twice', () => {
  const all = items({
    waiting: [asked('a', '2026-01-01T00:00:02Z'), asked('b', '2026-01-01T00:00:00Z')],
    offers: [offer('o', '2026-01-01T00:00:01Z')],
    told: [],
    consents: [consent('a', '2026-01-01T00:00:02Z', 'rejected')],
  });
  expect(all.waiting.map(({ id }) => id)).toEqual(['b', 'o']);
  expect(all.decided.map(({ id }) => id)).toEqual(['a']);
  expect(all.decided[0]).toMatchObject({ row: { decided_by: 'ben' } });
});

const step = (at: number, group: number, event: string, state = 'pending') => ({ step: at, group, event, state }) as ChainStepRow;
const chain = (...steps: ChainStepRow[]) => ({ steps }) as ChainRow;

test('without consent, what stands before the next thinking step is passed over', () => {
  const steps = [step(0, 0, 'email.send', 'asked'), step(1, 0, 'tools.now'), step(2, 1, 'memory.append'), step(3, 2, 'agent.think'), step(4, 3, 'user.notify')];
  const { beside, then, passedOver, instead } = afterwards(chain(...steps), 0);
  const events = (of: ChainStepRow[]) => of.map(({ event }) => event);
  expect(events(beside)).toEqual(['tools.now']);
  expect(events(then)).toEqual(['memory.append', 'agent.think', 'user.notify']);
  expect(events(passedOver)).toEqual(['memory.append']);
  expect(events(instead)).toEqual(['agent.think', 'user.notify']);
});

test('steps that are over are not told again', () => {
  expect(afterwards(chain(step(0, 0, 'tools.now', 'done'), step(1, 1, 'email.send', 'asked')), 1)).toEqual({ beside: [], then: [], passedOver: [], instead: [] });
});
