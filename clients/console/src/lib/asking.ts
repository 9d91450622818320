// When to ask again. Pure.

/** Questions are so far apart at least: what comes meanwhile is asked for together. */
export const APART_MS = 300;

export interface Asking {
  /** The message of the log that the next answer must take account of. */
  wanted: number;
  /** The message up to which the answer goes that is there; none before there is one. */
  position: number | null;
  /** When it was last asked. */
  askedAt: number;
  /** Whether that has no answer yet. */
  open: boolean;
  /** Whether the answer was that something is wrong. */
  failed: boolean;
}

/** How long to wait before asking again; none where there is nothing to ask for. */
export function pause({ wanted, position, askedAt, open, failed }: Asking, now: number): number | null {
  if (open || failed || position === null || wanted <= position) return null;
  return Math.max(0, askedAt + APART_MS - now);
}
