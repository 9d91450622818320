import { randomUUID } from "node:crypto";
import { type Msg, type NatsConnection, type NodeConnectionOptions, type Subscription } from "@nats-io/transport-node";
import { Action, type Said } from "./action.js";
import type { Asked, Call, Json } from "./call.js";
import { connected, leave, Troubles } from "./connection.js";

const PROTOCOL = 1;
const QUEUE = "workers";
const NAME = /^[A-Za-z0-9_-]+$/;

export type ToolFunction = (args: { [key: string]: Json }, call: Call) => Promise<Json | undefined> | Json | undefined;

/** A tool as agents see it, and the function that carries it out. */
export interface Tool {
  name: string;
  description: string;
  /** JSON Schema of the arguments, an object. */
  schema: { [key: string]: Json };
  run: ToolFunction;
  /** Calling twice with the same action id has the effect of calling once. */
  idempotent?: boolean;
  /** It changes nothing. */
  readOnly?: boolean;
  /** A human must consent to each call. */
  needsApproval?: boolean;
}

export interface WorkerOptions {
  /** Calls at once; tool-runner gives others to other replicas, or waits. Default 16. */
  maxParallel?: number;
  /** Ends of calls that are remembered, for a runner that asks again. Default 256. */
  remember?: number;
  /** For how long, in milliseconds. Default 600 000. */
  rememberMs?: number;
  /** How long calls may go on when the worker is stopped, in milliseconds. Default 20 000. */
  graceMs?: number;
  /** Where what is offered, and what is not, is told. Default the console. */
  log?: (line: string) => void;
}

interface Verdict {
  accepted?: string[];
  refused?: { tool: string; reason: string }[];
  error?: string;
  announce_ms?: number;
}

/** A replica of a worker, under the name that the configuration of tool-runner lists. */
export class Worker {
  readonly instance = `w-${randomUUID().replaceAll("-", "")}`;
  private readonly options: Required<WorkerOptions>;
  private readonly tools = new Map<string, Tool>();
  private readonly actions = new Map<string, Action>();
  private readonly startedMs = Date.now();
  private refused = new Map<string, string>();
  private accepted = "";
  private announceMs = 5_000;
  private announcing: NodeJS.Timeout | undefined;
  private isStopping = false;
  private nats: NatsConnection | undefined;
  private stopped: () => void = () => {};

  constructor(
    readonly name: string,
    options: WorkerOptions = {},
  ) {
    const defaults = { maxParallel: 16, remember: 256, rememberMs: 600_000, graceMs: 20_000 };
    this.options = { ...defaults, log: (line) => console.error(line), ...options };
  }

  /** Offers a tool. One of the same name is replaced. Throws for a name that no tool can have. */
  add(tool: Tool): this {
    if (!NAME.test(tool.name)) throw new RangeError(`"${tool.name}" is no name of a tool: use A-Z, a-z, 0-9, _ and -`);
    this.tools.set(tool.name, tool);
    return this;
  }

  /**
   * Works until SIGTERM, SIGINT or {@link stop}. A login that is refused, and a server that is away, are tried again for as long
   * as that takes.
   */
  async run(connection: NodeConnectionOptions): Promise<void> {
    const until = new Promise<void>((resolve) => {
      this.stopped = resolve;
    });
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => this.stop());
    const options = { name: `kairo-worker ${this.name}`, maxReconnectAttempts: -1, ignoreAuthErrorAbort: true, ...connection };
    const troubles = new Troubles(connection.user ?? "nobody", this.options.log);
    const nats = await connected(options, troubles, until);
    if (!nats) return;
    this.nats = nats;
    const calls = this.listen(nats);
    void this.hearOfConnection(nats, troubles);
    this.announce();
    await until;
    clearTimeout(this.announcing);
    this.say("announce", this.announcement(true));
    for (const subscription of calls) subscription.unsubscribe();
    await this.finish();
    await leave(nats);
  }

  /** Takes no more calls; {@link run} returns when those that run have ended, or after the grace. */
  stop(): void {
    this.isStopping = true;
    this.stopped();
  }

  private listen(nats: NatsConnection): Subscription[] {
    const hear = (subject: string, heard: (message: Msg) => void, queue?: string) => {
      const callback = (error: Error | null, message: Msg) => {
        if (error) this.options.log(`${subject}: ${error.message}`);
        else heard(message);
      };
      return nats.subscribe(`kairo.worker.${this.name}.${subject}`, queue ? { queue, callback } : { callback });
    };
    hear("hello", () => this.announce());
    hear(`announced.${this.instance}`, (message) => this.heed(message.json<Verdict>()));
    return [...this.tools.keys()].map((tool) => hear(`call.${tool}`, (message) => this.called(message), QUEUE));
  }

  private async hearOfConnection(nats: NatsConnection, troubles: Troubles): Promise<void> {
    for await (const status of nats.status()) {
      if (status.type === "reconnect") this.announce();
      if (status.type === "error") troubles.tell(status.error);
    }
  }

  private announce(): void {
    if (this.isStopping) return;
    clearTimeout(this.announcing);
    this.say("announce", this.announcement(false));
    this.announcing = setTimeout(() => {
      this.forget();
      this.announce();
    }, this.announceMs);
  }

  private announcement(leaving: boolean): { [key: string]: Json } {
    const tools = [...this.tools.values()].map(({ name, description, schema, idempotent, readOnly, needsApproval }) => ({
      name,
      description,
      schema,
      idempotent: idempotent ?? false,
      read_only: readOnly ?? false,
      needs_approval: needsApproval ?? false,
    }));
    return { protocol: PROTOCOL, instance: this.instance, started_ms: this.startedMs, leaving, tools };
  }

  private heed(verdict: Verdict): void {
    this.announceMs = Math.max(verdict.announce_ms ?? 5_000, 50);
    const refused = new Map((verdict.refused ?? []).map(({ tool, reason }) => [tool, reason]));
    if (verdict.error) refused.set(this.name, verdict.error);
    for (const [what, reason] of refused) {
      if (this.refused.get(what) !== reason) this.options.log(`${what} is not offered: ${reason}`);
    }
    this.refused = refused;
    const accepted = [...(verdict.accepted ?? [])].sort().join(", ");
    if (accepted !== this.accepted) this.options.log(`offered: ${accepted}`);
    this.accepted = accepted;
  }

  private called(message: Msg): void {
    const respond = (answer: Said) => message.respond(JSON.stringify(answer));
    let asked: Asked;
    try {
      asked = message.json<Asked>();
    } catch (error) {
      respond({ type: "refused", message: `the call cannot be read: ${error}` });
      return;
    }
    const known = this.actions.get(asked.action_id);
    const tool = this.tools.get(asked.tool);
    const running = [...this.actions.values()].filter((action) => !action.isOver).length;
    if (known) {
      respond(this.acceptance());
      known.repeat();
    } else if (!tool) {
      respond({ type: "refused", message: `this worker has no tool ${asked.tool}` });
    } else if (this.isStopping || running >= this.options.maxParallel) {
      respond({ type: "busy" });
    } else {
      this.begin(asked, tool, () => respond(this.acceptance()));
    }
  }

  private begin(asked: Asked, tool: Tool, accept: () => void): void {
    const action = new Action(asked, (said) => this.say(`said.${asked.action_id}`, said));
    this.actions.set(asked.action_id, action);
    // Before the answer, so that whoever has the answer can speak to us of the action.
    action.subscription = this.nats?.subscribe(`kairo.worker.${this.name}.action.${asked.action_id}`, {
      callback: (error, message) => {
        if (!error) this.ordered(action, message);
      },
    });
    accept();
    action.begin(tool.run);
    this.forget();
  }

  private ordered(action: Action, message: Msg): void {
    const { type } = message.json<{ type: string }>();
    if (type === "attach") {
      message.respond(JSON.stringify(this.acceptance()));
      action.repeat();
    } else if (type === "cancel") {
      action.cancel();
    } else if (type === "acknowledge") {
      action.acknowledge();
    }
  }

  private acceptance(): Said {
    return { type: "accepted", instance: this.instance };
  }

  private say(subject: string, said: { [key: string]: Json }): void {
    try {
      this.nats?.publish(`kairo.worker.${this.name}.${subject}`, JSON.stringify(said));
    } catch (error) {
      this.options.log(`nothing could be said on ${subject}: ${error}`);
    }
  }

  private async finish(): Promise<void> {
    const open = [...this.actions.values()].filter((action) => !action.isSettled).map((action) => action.heard);
    let late: NodeJS.Timeout | undefined;
    const grace = new Promise<void>((resolve) => {
      late = setTimeout(resolve, this.options.graceMs);
    });
    await Promise.race([Promise.all(open), grace]);
    clearTimeout(late);
    for (const action of this.actions.values()) action.close();
  }

  /** Forgets how calls ended, the oldest first: after a while, and what is too many. */
  private forget(): void {
    const over = [...this.actions].filter(([, action]) => action.isOver);
    const oldest = Date.now() - this.options.rememberMs;
    over.forEach(([id, action], at) => {
      if (over.length - at <= this.options.remember && action.overSince >= oldest) return;
      action.close();
      this.actions.delete(id);
    });
  }
}
