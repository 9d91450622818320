// Decisions made again beside those of the log, and what a change to the log reaches. Pure.
import type { components } from '$lib/api/openapi';

type Schemas = components['schemas'];

export type Requests = Schemas['AgentRequests'];
export type Report = Schemas['ReplayReport'];
export type Remade = Schemas['ReplayedDecision'];
export type Cone = Schemas['Cone'];
export type Reached = Cone['reached'][number];
export type Wanted = Schemas['ReplayRequest'];

export interface Message {
  role: string;
  text: string;
}

/** The messages of a request, and the tools that it offers. */
export function messagesOf(request: Record<string, unknown>): Message[] {
  const told = list(request['messages']).map((message) => ({ role: text(message['role']), text: wordsOf(message) }));
  const tools = list(request['tools']).map((tool) => text(tool['name']));
  return tools.length > 0 ? [...told, { role: 'tools', text: tools.join(', ') }] : told;
}

function wordsOf(message: Record<string, unknown>): string {
  const calls = list(message['calls']).map((call) => `${text(call['tool'])} ${text(call['arguments'])}`);
  const parts = list(message['parts']).map((part) => `[${text(part['media_type'])} ${text(part['name'])}]`);
  return [text(message['text']), ...parts, ...calls].filter((part) => part !== '').join('\n');
}

/** What a decision does, a line each: what it says, and what it calls. */
export function deeds(decision: Record<string, unknown> | undefined): string[] {
  return list(decision?.['events']).map((held) => {
    const { event_id: _, ...rest } = held;
    const [kind = '', body] = Object.entries(rest).find(([, value]) => typeof value === 'object' && value !== null) ?? [];
    const said = body as Record<string, unknown> | undefined;
    const action = (said?.['say'] ?? said?.['tool_call'] ?? said?.['ask'] ?? said) as Record<string, unknown> | undefined;
    const what = [action?.['text'] ?? action?.['tool'] ?? action?.['reason'], action?.['arguments']].filter((part) => typeof part === 'string');
    return [kind, ...what].join(' ').trim();
  });
}

/** How a lane begins: what is worth a look first, the same last. */
const ORDER: Remade['outcome'][] = ['not_replayable', 'differs', 'drifted', 'reworded', 'forgotten', 'same'];

export function worst(decisions: readonly Remade[]): Remade['outcome'] | null {
  return ORDER.find((outcome) => decisions.some((decision) => decision.outcome === outcome)) ?? null;
}

/** What is changed, of what is written in a form; empty fields change nothing. */
export function wantedOf(prompt: string, own: string, limits: Record<string, string>, range: { from: string; to: string }): Wanted {
  const numbers = Object.entries(limits).flatMap(([name, value]) => (value.trim() === '' ? [] : [[name, Number(value)] as const]));
  return {
    ...(prompt !== own && { prompt }),
    ...(numbers.length > 0 && { limits: Object.fromEntries(numbers) }),
    ...(range.from.trim() !== '' && { from: Number(range.from) }),
    ...(range.to.trim() !== '' && { to: Number(range.to) }),
  };
}

export interface Branch {
  reached: Reached;
  depth: number;
}

/** A cone as a tree, in lines: each message below the one that it hangs on. */
export function branches(reached: readonly Reached[]): Branch[] {
  const below = new Map<number, Reached[]>();
  const places = new Set(reached.map(({ sequence }) => sequence));
  const roots: Reached[] = [];
  for (const it of reached) {
    if (it.because === undefined || !places.has(it.because)) roots.push(it);
    else below.set(it.because, [...(below.get(it.because) ?? []), it]);
  }
  const lines: Branch[] = [];
  const left = roots.map((it) => ({ reached: it, depth: 0 })).reverse();
  for (let next = left.pop(); next; next = left.pop()) {
    lines.push(next);
    const { depth } = next;
    left.push(...(below.get(next.reached.sequence) ?? []).map((it) => ({ reached: it, depth: depth + 1 })).reverse());
  }
  return lines;
}

function list(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'object' && item !== null) : [];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
