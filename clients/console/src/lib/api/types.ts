// Names for what is said most, of the generated types.
import type { components as Frames } from './asyncapi';
import type { components } from './openapi';

type Schemas = components['schemas'];

export type AgentRow = Schemas['AgentRow'];
export type ActionRow = Schemas['ActionRow'];
export type DeclaredCommand = Schemas['DeclaredCommand'];
export type ApprovalRow = Schemas['ApprovalRow'];
export type BriefingRow = Schemas['BriefingRow'];
export type ChainRow = Schemas['ChainRow'];
export type ChainStepRow = Schemas['ChainStepRow'];
export type ConsentRow = Schemas['ConsentRow'];
export type Fork = Schemas['Fork'];
export type InnerStateRow = Schemas['InnerStateRow'];
export type MemoryRow = Schemas['MemoryRow'];
export type OfferRow = Schemas['OfferRow'];
export type ProcessRow = Schemas['ProcessRow'];
export type TaskRow = Schemas['TaskRow'];
export type ThreadEventRow = Schemas['ThreadEventRow'];
export type ThreadRow = Schemas['ThreadRow'];
export type Token = Frames['schemas']['Token'];
export type Output = Frames['schemas']['Output'];

/** An event, with what it says open: that depends on its type. */
export type Event = Omit<Schemas['Event'], 'payload'> & { payload: Record<string, unknown> };

/** A field of what an event says, as text; empty where it has none. */
export function text(event: Event, field = 'text'): string {
  const value = event.payload[field];
  return typeof value === 'string' ? value : '';
}

/** Where an event stands, as streams and queries take it. */
export function placeOf(event: Event): string {
  return `${event.sequence}.${event.position}`;
}

/** The agent, user or service that a subject is of. */
export function ownerOf(event: Event): string {
  return event.subject.split('.')[2] ?? '';
}

/** `kairo.tool.result.v1` as `tool.result`. */
export function kindOf(event: Event): string {
  return event.type.replace(/^kairo\./, '').replace(/\.v\d+$/, '');
}
