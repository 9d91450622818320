import type { Subscription } from "@nats-io/transport-node";
import { type Asked, type Call, type Json, ToolError } from "./call.js";
import type { ToolFunction } from "./worker.js";

/** How often an end is said that nobody acknowledges: whoever asked is gone, and the next one asks again. */
const MOST_REPEATS = 30;
/** More often nobody would look at progress. */
const PROGRESS_PAUSE_MS = 200;

export type Said = { type: string; [key: string]: Json };

/** One action. Begun once; says at each beat that it is alive, then how it ended until that is acknowledged. */
export class Action {
  overSince = 0;
  subscription: Subscription | undefined;
  private end: Said | undefined;
  private repeats = 0;
  private isAcknowledged = false;
  private told = Number.NEGATIVE_INFINITY;
  private readonly stop = new AbortController();
  private readonly beatMs: number;
  private readonly timeoutMs: number;
  private beats: NodeJS.Timeout | undefined;
  private limit: NodeJS.Timeout | undefined;
  private settle: () => void = () => {};
  /** Resolved when somebody has heard how it ended. */
  readonly heard = new Promise<void>((resolve) => {
    this.settle = resolve;
  });

  constructor(
    private readonly asked: Asked,
    private readonly say: (said: Said) => void,
  ) {
    this.beatMs = Math.max(asked.beat_ms ?? 2_000, 10);
    this.timeoutMs = asked.timeout_ms ?? 60_000;
  }

  get isOver(): boolean {
    return this.end !== undefined;
  }

  get isSettled(): boolean {
    return this.isAcknowledged || this.repeats >= MOST_REPEATS;
  }

  begin(run: ToolFunction): void {
    this.beats = setInterval(() => this.beat(), this.beatMs);
    // Whoever asked gives up then, and may be gone.
    this.limit = setTimeout(() => this.cancel(), this.timeoutMs + this.beatMs);
    this.beat();
    void this.run(run);
  }

  /** Asks it to stop. */
  cancel(): void {
    if (!this.isOver) this.stop.abort();
  }

  /** Says again how it ended, or that it is alive: somebody else listens now. */
  repeat(): void {
    this.isAcknowledged = false;
    this.repeats = 0;
    this.beat();
  }

  /** Whoever asked has heard how it ended. */
  acknowledge(): void {
    if (!this.isOver) return;
    this.isAcknowledged = true;
    this.settle();
  }

  close(): void {
    clearInterval(this.beats);
    clearTimeout(this.limit);
    this.subscription?.unsubscribe();
  }

  private async run(run: ToolFunction): Promise<void> {
    this.end = await this.outcome(run);
    this.overSince = Date.now();
    clearTimeout(this.limit);
    this.beat();
  }

  private async outcome(run: ToolFunction): Promise<Said> {
    try {
      const value = (await run(this.asked.arguments, this.call())) ?? null;
      const size = Buffer.byteLength(JSON.stringify(value));
      const most = this.asked.max_result_bytes ?? 262_144;
      if (size <= most) return { type: "result", value };
      const message = `the tool ran, but its result takes ${size} bytes of at most ${most}`;
      return { type: "error", kind: "too_large", message };
    } catch (error) {
      if (this.stop.signal.aborted) return { type: "stopped" };
      if (error instanceof ToolError) return { type: "error", kind: error.kind, message: error.message };
      return { type: "error", kind: "failed", message: String(error) };
    }
  }

  private call(): Call {
    const { asked } = this;
    return {
      actionId: asked.action_id,
      tool: asked.tool,
      agent: asked.agent ?? "",
      user: asked.user ?? null,
      threadId: asked.thread_id ?? "",
      time: asked.time ?? "",
      timeoutMs: this.timeoutMs,
      signal: this.stop.signal,
      progress: (fraction, message) => this.progress(fraction, message ?? null),
    };
  }

  private progress(fraction: number | null, message: string | null): void {
    const now = Date.now();
    if (this.isOver || now - this.told < PROGRESS_PAUSE_MS) return;
    this.told = now;
    this.say({ type: "progress", fraction, message });
  }

  private beat(): void {
    if (this.end === undefined) {
      this.say({ type: "alive" });
    } else if (!this.isSettled) {
      this.repeats += 1;
      this.say(this.end);
    }
  }
}
