// Images, audio and video of messages: they stand under the digest of their bytes.
import { message, problemOf } from '$lib/api/problem';
import { session } from '$lib/session.svelte';
import type { Part } from './fold';

/** What the gateway stores; it looks at the bytes itself. */
export const ACCEPTED =
  'image/png,image/jpeg,image/gif,image/webp,audio/wav,audio/mpeg,audio/mp4,audio/ogg,audio/webm,audio/flac,video/mp4,video/webm';

/** Browsers have names of their own for some. */
const ALIASES: Record<string, string> = { 'audio/x-wav': 'audio/wav', 'audio/x-flac': 'audio/flac', 'audio/x-m4a': 'audio/mp4', 'audio/mp3': 'audio/mpeg' };
const MAX_NAME = 255;

export async function store(file: File): Promise<Part> {
  const mediaType = ALIASES[file.type] ?? file.type;
  const headers = { ...session.headers(), 'content-type': mediaType };
  const answer = await fetch('/v1/objects', { method: 'POST', headers, body: file });
  if (!answer.ok) throw new Error(`${file.name}: ${message(await problemOf(answer))}`);
  const { digest } = (await answer.json()) as { digest: string };
  return { digest, mediaType, name: file.name.slice(0, MAX_NAME) };
}

/** Its bytes, as an address that only this page can open. Whoever asked gives it back with `URL.revokeObjectURL`. */
export async function opened(digest: string, signal: AbortSignal): Promise<string> {
  const answer = await fetch(`/v1/objects/${encodeURIComponent(digest)}`, { headers: session.headers(), signal });
  if (!answer.ok) throw await problemOf(answer);
  return URL.createObjectURL(await answer.blob());
}
