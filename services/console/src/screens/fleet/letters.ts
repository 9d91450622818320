// Dead letters, as people can read them. Pure.
import { text, type Event } from '$lib/api/types';

export interface Letter {
  id: string;
  at: string;
  consumer: string;
  subject: string;
  place: string;
  reason: string;
  /** Its first bytes, as text; bytes that are no text are shown as what stands for them. */
  head: string;
}

export function letterOf(event: Event): Letter {
  const sequence = String(event.payload['sequence'] ?? '');
  return {
    id: event.event_id,
    at: event.ts,
    consumer: text(event, 'consumer'),
    subject: text(event, 'subject'),
    place: [text(event, 'stream'), sequence].filter((part) => part !== '').join(' '),
    reason: text(event, 'reason'),
    head: decoded(text(event, 'head')),
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
