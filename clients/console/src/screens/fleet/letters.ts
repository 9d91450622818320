// Dead letters, as people can read them. Pure.
import type { components } from '$lib/api/openapi';
import { text, type Event } from '$lib/api/types';

export type Retry = components['schemas']['RetryRow'];

export interface Letter {
  id: string;
  /** Its number, by which it is retried. */
  number: number;
  /** Whether whoever wrote it deals with its message again. */
  canRetry: boolean;
  retry: Retry | null;
  at: string;
  consumer: string;
  subject: string;
  place: string;
  reason: string;
  /** Its first bytes, as text; bytes that are no text are shown as what stands for them. */
  head: string;
  /** The same as JSON, where they are all of it and JSON. */
  json: unknown;
}

/** Rows of a read model are made again all together. */
const NOT_AGAIN = 'projector';

export function letterOf(event: Event, retries: readonly Retry[] = []): Letter {
  const sequence = String(event.payload['sequence'] ?? '');
  const head = decoded(text(event, 'head'));
  return {
    id: event.event_id,
    number: event.sequence,
    canRetry: text(event, 'consumer') !== NOT_AGAIN,
    retry: retries.find(({ letter }) => letter === event.sequence) ?? null,
    at: event.ts,
    consumer: text(event, 'consumer'),
    subject: text(event, 'subject'),
    place: [text(event, 'stream'), sequence].filter((part) => part !== '').join(' '),
    reason: text(event, 'reason'),
    head,
    json: asJson(head),
  };
}

function decoded(base64: string): string {
  try {
    const bytes = Uint8Array.from(atob(base64.replace(/-/g, '+').replace(/_/g, '/')), (byte) => byte.charCodeAt(0));
    return new TextDecoder().decode(bytes);
  } catch {
    return base64;
  }
}

function asJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : undefined;
  } catch {
    return undefined;
  }
}
