// What an inbox shows, and what an answer leads to. Pure.
import type { ApprovalRow, BriefingRow, ChainRow, ChainStepRow, ConsentRow, OfferRow } from '$lib/api/types';

export type Item =
  | { kind: 'approval'; id: string; at: string; row: ConsentRow }
  | { kind: 'offer'; id: string; at: string; row: OfferRow }
  | { kind: 'briefing'; id: string; at: string; row: BriefingRow };

export type Part = 'waiting' | 'decided' | 'told';
export const PARTS: readonly Part[] = ['waiting', 'decided', 'told'];

export interface Answer {
  waiting: readonly ApprovalRow[];
  offers: readonly OfferRow[];
  told: readonly BriefingRow[];
  /** Calls that a human was asked about, whatever was said to them. */
  consents: readonly ConsentRow[];
}

/** Each call once: what was decided meanwhile, here or elsewhere, no longer waits. */
export function items({ waiting, offers, told, consents }: Answer): Record<Part, Item[]> {
  const known = new Set(consents.map(({ action_id }) => action_id));
  const older = waiting.filter(({ action_id }) => !known.has(action_id)).map(asked);
  const approvals = [...consents, ...older].map((row): Item => ({ kind: 'approval', id: row.action_id, at: row.requested_at, row }));
  const isWaiting = (item: Item) => item.kind === 'approval' && item.row.status === 'waiting';
  const offered = offers.map((row): Item => ({ kind: 'offer', id: row.offer_id, at: row.offered_at, row }));
  const byTime = (one: Item, other: Item) => Date.parse(one.at) - Date.parse(other.at);
  return {
    // Who has waited longest comes first.
    waiting: [...approvals.filter(isWaiting), ...offered].sort(byTime),
    decided: approvals.filter((item) => !isWaiting(item)),
    told: told.map((row): Item => ({ kind: 'briefing', id: row.event_id, at: row.briefed_at, row })),
  };
}

function asked(row: ApprovalRow): ConsentRow {
  return { ...row, status: 'waiting', decided_at: null, decided_by: null, entered_by: null, note: null };
}

/** What comes after a step of a chain that waits for consent. */
export interface Afterwards {
  /** What runs at the same time, and what comes then, if it is allowed. */
  beside: ChainStepRow[];
  then: ChainStepRow[];
  /** If it is not: what is passed over, since it stands before the next thinking step, which is told; and what may follow. */
  passedOver: ChainStepRow[];
  instead: ChainStepRow[];
}

const THINKS = 'agent.think';

export function afterwards({ steps }: ChainRow, step: number): Afterwards {
  const own = steps.find((other) => other.step === step);
  const open = steps.filter((other) => other.step !== step && (other.state === 'pending' || other.state === 'asked'));
  const behind = own ? open.filter((other) => other.group > own.group) : [];
  const thinks = behind.findIndex((other) => other.event === THINKS);
  const until = thinks < 0 ? behind.length : thinks;
  return {
    beside: own ? open.filter((other) => other.group === own.group) : [],
    then: behind,
    passedOver: behind.slice(0, until),
    instead: behind.slice(until),
  };
}
