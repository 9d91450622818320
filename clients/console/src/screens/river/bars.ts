// An outline of the log as bars. Pure.
import type { components } from '$lib/api/openapi';
import type { Tone } from './filter';

export type Bucket = components['schemas']['OutlineBucket'];

export interface Bar {
  bucket: Bucket;
  /** Where it is in the strip, and how long: shares of its height. */
  from: number;
  to: number;
  /** How full it is: of the fullest, by the root, so that what is seldom is seen too. */
  full: number;
  tone: Tone;
}

const TONES: Record<string, Tone> = {
  user: 'user',
  agent: 'thinks',
  memory: 'thinks',
  state: 'thinks',
  tool: 'tool',
  process: 'process',
  task: 'task',
  chain: 'task',
  thread: 'task',
  email: 'task',
};

export function bars(buckets: readonly Bucket[]): Bar[] {
  const first = buckets[0]?.first ?? 0;
  const all = Math.max(1, (buckets.at(-1)?.last ?? 0) - first + 1);
  const most = Math.max(1, ...buckets.map(({ events }) => events));
  return buckets.map((bucket) => ({
    bucket,
    from: (bucket.first - first) / all,
    to: (bucket.last - first + 1) / all,
    full: Math.sqrt(bucket.events / most),
    tone: TONES[bucket.families[0]?.family ?? ''] ?? 'system',
  }));
}

/** The place in the log at a share of the strip's height. */
export function placeAt(buckets: readonly Bucket[], share: number): number {
  const first = buckets[0]?.first ?? 0;
  const last = buckets.at(-1)?.last ?? 0;
  const at = first + Math.floor(Math.min(1, Math.max(0, share)) * (last - first + 1));
  // Between two of them nothing happened.
  const next = buckets.find((bucket) => bucket.last >= at);
  return next ? Math.max(next.first, Math.min(at, next.last)) : last;
}
