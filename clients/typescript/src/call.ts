/** What JSON can say. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Ends a call as failed, with a message that the agent is shown. */
export class ToolError extends Error {
  constructor(
    message: string,
    readonly kind: "failed" | "invalid_arguments" | "not_found" | "in_doubt" = "failed",
  ) {
    super(message);
  }
}

/** What is known of a call besides its arguments. */
export interface Call {
  /** The idempotency key: a call that comes again has the same. */
  readonly actionId: string;
  readonly tool: string;
  readonly agent: string;
  /** On whose behalf; null where that is not known. */
  readonly user: string | null;
  readonly threadId: string;
  /** When the agent decided on it, RFC 3339: the same when it comes again. */
  readonly time: string;
  readonly timeoutMs: number;
  /** Aborted when the call is to stop. */
  readonly signal: AbortSignal;
  /** Says how far the call is, from 0 to 1, in words, or both; what comes too often is left out. */
  progress(fraction: number | null, message?: string): void;
}

/** A call as it is asked. */
export interface Asked {
  action_id: string;
  tool: string;
  arguments: { [key: string]: Json };
  agent?: string;
  user?: string | null;
  thread_id?: string;
  time?: string;
  timeout_ms?: number;
  beat_ms?: number;
  max_result_bytes?: number;
}
