// What a fork tells, as it is shown. Pure.
import type { ConsentRow } from '$lib/api/types';

/** Something that is shown, in its order. */
export type Line =
  | { kind: 'said'; who: 'you' | 'agent'; text: string }
  | { kind: 'answered'; what: string; from: string; why: string }
  | { kind: 'failed'; text: string };

/** A call that waits for what a person says. */
export interface Question {
  question: number;
  tool: string;
  arguments: unknown;
}

export interface Shown {
  lines: Line[];
  questions: Question[];
  /** Calls that wait for consent, as an inbox has them. */
  consents: ConsentRow[];
  resting: boolean;
  /** When the next timer goes off, by its clock; empty where none is set, or it is at work. */
  nextTimer: string;
  /** Why it ended; empty as long as it goes on. */
  ended: string;
}

export const NOTHING: Shown = { lines: [], questions: [], consents: [], resting: false, nextTimer: '', ended: '' };

type Fields = Record<string, unknown>;

const fields = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});
const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** What is shown behind one more event of the fork. */
export function take(shown: Shown, name: string, told: unknown): Shown {
  const data = fields(told);
  switch (name) {
    case 'fork.asked': {
      const question = { question: Number(data['question']), tool: text(data['tool']), arguments: data['arguments'] };
      return { ...shown, resting: false, questions: [...shown.questions, question] };
    }
    case 'fork.answered': {
      const answer = fields(data['answer']);
      const what = text(data['tool']) || text(data['agent']) || text(data['tier']);
      const line: Line = { kind: 'answered', what, from: text(answer['from']), why: text(answer['why']) };
      return { ...shown, resting: false, lines: [...shown.lines, line] };
    }
    case 'fork.at_rest':
      return { ...shown, resting: true, questions: [], nextTimer: text(data['next_timer']) };
    case 'fork.ended':
      return { ...shown, resting: true, questions: [], consents: [], nextTimer: '', ended: text(data['why']) };
    default: {
      const line = said(data);
      const consents = waiting(shown.consents, data);
      return { ...shown, resting: false, nextTimer: '', consents, lines: line ? [...shown.lines, line] : shown.lines };
    }
  }
}

/** What waits for consent behind one more event: until there is a verdict, or the chain is over that asked. */
function waiting(consents: ConsentRow[], event: Fields): ConsentRow[] {
  const payload = fields(event['payload']);
  switch (text(event['type'])) {
    case 'kairo.agent.approval_requested.v1':
      return [...consents, consent(event, payload)];
    case 'kairo.user.approval.v1':
      return consents.filter((row) => row.action_id !== payload['action_id']);
    case 'kairo.chain.ended.v1':
      return consents.filter((row) => row.chain_id !== payload['chain_id']);
    default:
      return consents;
  }
}

function consent(event: Fields, payload: Fields): ConsentRow {
  const given = text(payload['arguments']);
  return {
    action_id: text(event['event_id']),
    agent: text(event['subject']).split('.')[2] ?? '',
    arguments: json(given) as ConsentRow['arguments'],
    chain_id: text(payload['chain_id']) || null,
    correlation_id: text(event['correlation_id']),
    decided_at: null,
    decided_by: null,
    entered_by: null,
    note: null,
    outside: Array.isArray(payload['outside']) ? payload['outside'].map(text) : [],
    requested_at: text(event['ts']),
    sequence: Number(event['sequence']),
    status: 'waiting',
    step: Number(payload['step']),
    thread_id: text(event['thread_id']) || null,
    tool: text(payload['tool']),
    user: text(payload['user']),
  };
}

function json(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** What is shown of events of the log. */
export const linesOf = (events: unknown[]): Line[] => events.reduce<Shown>((shown, event) => take(shown, 'message', event), NOTHING).lines;

function said(event: Fields): Line | null {
  const payload = fields(event['payload']);
  const type = text(event['type']);
  if (type === 'kairo.user.message.v1') return { kind: 'said', who: 'you', text: text(payload['text']) };
  if (type === 'kairo.agent.failed.v1') return { kind: 'failed', text: text(payload['text']) || text(payload['reason']) };
  return payload['type'] === 'say' ? { kind: 'said', who: 'agent', text: text(payload['text']) } : null;
}
