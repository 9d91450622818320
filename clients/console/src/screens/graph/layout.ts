// A turn as a graph: which event caused which, on which lane each stands, and which the answer waited for. Pure.
import { kindOf, ownerOf, type Event } from '$lib/api/types';

export const LANES = ['user', 'mind', 'tool', 'process', 'system'] as const;
/** One of these, or another agent that takes part: `@name`. */
export type Lane = (typeof LANES)[number] | `@${string}`;

export interface Node {
  event: Event;
  lane: Lane;
  /** In the order of the log. */
  row: number;
  cause: Node | null;
  effects: Node[];
  /** That is not what the log names as the cause, but what the agent decided before. */
  presumed: boolean;
  /** Milliseconds from its cause; none where that is not of this turn. */
  wait: number | null;
  /** The answer waited for it. */
  critical: boolean;
  /** Reports of progress that are folded into it, and the newest of them. */
  reports: number;
  report: Event | null;
}

export interface Graph {
  nodes: Node[];
  roots: Node[];
  /** Those that something is on, in their order. */
  lanes: Lane[];
  /** Milliseconds along the critical path. */
  took: number;
}

export interface Turn {
  id: string;
  first: Event;
  events: number;
}

/** The events of one turn, in the order of the log. */
export function graphOf(events: readonly Event[]): Graph {
  const agent = agentOf(events);
  const causes = new Causes(events);
  const nodes: Node[] = [];
  const byId = new Map<string, Node>();
  const decided = new Map<string, Node>();
  for (const event of events) {
    if (byId.has(event.event_id)) continue;
    const named = causes.of(event, byId);
    if (named && kindOf(event).endsWith('.progress')) {
      named.reports += 1;
      named.report = event;
      byId.set(event.event_id, named);
      continue;
    }
    const isDecision = event.subject.endsWith('.decision');
    const before = isDecision && event.causation_id ? decided.get(ownerOf(event)) : undefined;
    // All of one decision follows from the same.
    const presumed = named || !before ? null : before.event.sequence < event.sequence ? before : before.cause;
    const cause = named ?? presumed;
    const wait = cause && Math.max(0, Date.parse(event.ts) - Date.parse(cause.event.ts));
    const lane = laneOf(event, agent);
    const node: Node = { event, lane, row: nodes.length, cause, presumed: presumed !== null, effects: [], wait, critical: false, reports: 0, report: null };
    cause?.effects.push(node);
    byId.set(event.event_id, node);
    if (isDecision && decided.get(ownerOf(event))?.event.sequence !== event.sequence) decided.set(ownerOf(event), node);
    nodes.push(node);
  }
  const took = markCritical(nodes);
  return { nodes, roots: nodes.filter(({ cause }) => cause === null), lanes: lanesOf(nodes), took };
}

/**
 * What an event follows from. Mostly that is an event. What a decision as a whole caused names the message of the decision,
 * whose id no event has: then what the event answers, or the task that it begins, says which event that was.
 */
class Causes {
  #scheduled = new Map<string, string>();
  #answered = new Map<string, string>();
  #named = new Map<string, string>();

  constructor(events: readonly Event[]) {
    const ids = new Set(events.map(({ event_id }) => event_id));
    for (const event of events) {
      const task = field(event.payload['task'], 'task_id');
      if (event.type.includes('.task.scheduled.') && task) this.#scheduled.set(task, event.event_id);
      const request = field(event.payload['answer'], 'request_id');
      if (request) this.#answered.set(request, event.event_id);
    }
    for (const event of events) {
      const cause = event.causation_id ?? '';
      const refers = this.#refers(event);
      if (cause !== '' && !ids.has(cause) && refers && !this.#named.has(cause)) this.#named.set(cause, refers);
    }
  }

  of(event: Event, byId: ReadonlyMap<string, Node>): Node | null {
    const cause = event.causation_id ?? '';
    for (const id of [cause, this.#refers(event), this.#named.get(cause)]) {
      const found = id && byId.get(id);
      if (found) return found;
    }
    return null;
  }

  #refers({ type, payload }: Event): string | undefined {
    const request = String(payload['request_id'] ?? '');
    if (type.includes('.agent.request.')) return request;
    if (type.includes('.agent.answer.')) return this.#answered.get(request) ?? request;
    return type.includes('.task.started.') ? this.#scheduled.get(String(payload['task_id'])) : undefined;
  }
}

function field(of: unknown, name: string): string {
  const value = typeof of === 'object' && of !== null ? (of as Record<string, unknown>)[name] : undefined;
  return typeof value === 'string' ? value : '';
}

/** The way to the answer: to the last that ends the turn, else to the last that was said, else to the newest. */
function markCritical(nodes: readonly Node[]): number {
  const isAnswer = ({ event: { payload } }: Node) => payload['final'] === true && payload['message_id'] !== '';
  const end = nodes.findLast(isAnswer) ?? nodes.findLast(({ event }) => event.payload['type'] === 'say') ?? nodes.at(-1);
  let first = end;
  for (let at: Node | null = end ?? null; at; at = at.cause) {
    at.critical = true;
    first = at;
  }
  return end && first ? Math.max(0, Date.parse(end.event.ts) - Date.parse(first.event.ts)) : 0;
}

/** Those that something is on: first what there always is, then other agents as they come. */
function lanesOf(nodes: readonly Node[]): Lane[] {
  const used = new Set(nodes.map(({ lane }) => lane));
  const others = [...used].filter((lane) => lane.startsWith('@'));
  return [...LANES.filter((lane) => used.has(lane)), ...others];
}

/** Whose turn it is: the agent that it was first delivered to. */
function agentOf(events: readonly Event[]): string {
  const first = events.find((event) => kindOf(event) === 'agent.message') ?? events.find((event) => event.subject.startsWith('kairo.agent.'));
  return first ? ownerOf(first) : '';
}

function laneOf(event: Event, agent: string): Lane {
  const noun = event.subject.split('.')[1] ?? '';
  if (noun === 'user' || noun === 'system') return noun;
  if (agent !== '' && ownerOf(event) !== agent) return `@${ownerOf(event)}`;
  return noun === 'tool' || noun === 'process' ? noun : 'mind';
}

/** The turns that these events are of, the newest first. */
export function turnsOf(events: readonly Event[]): Turn[] {
  const turns = new Map<string, Turn>();
  for (const event of events) {
    const turn = turns.get(event.correlation_id);
    if (turn) turn.events += 1;
    else turns.set(event.correlation_id, { id: event.correlation_id, first: event, events: 1 });
  }
  // What services say of themselves is answered by nobody.
  return [...turns.values()].filter(({ first }) => !first.subject.startsWith('kairo.system.')).reverse();
}
