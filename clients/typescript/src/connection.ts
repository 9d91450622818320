import { AuthorizationError, connect, type NatsConnection, type NodeConnectionOptions } from "@nats-io/transport-node";

/** The same trouble is not told more often. */
const TROUBLE_PAUSE_MS = 30_000;
/** How long to wait before another try to connect. */
const RETRY_MS = 2_000;
/** How long a connection may take to close. */
const CLOSE_MS = 500;

/** Says what is wrong with a connection, and what to do about it. */
export class Troubles {
  private readonly told = new Map<string, number>();

  constructor(
    private readonly user: string,
    private readonly log: (line: string) => void,
  ) {}

  tell(error: unknown): void {
    const isRefusal = error instanceof AuthorizationError || /authorization violation/i.test(String(error));
    const what = isRefusal ? "the login is refused" : String(error);
    const now = Date.now();
    if (now - (this.told.get(what) ?? Number.NEGATIVE_INFINITY) < TROUBLE_PAUSE_MS) return;
    if (this.told.size >= 100) this.told.clear();
    this.told.set(what, now);
    this.log(isRefusal ? this.refused() : `the connection to nats-server: ${what}`);
  }

  private refused(): string {
    return (
      `nats-server refused the login of this worker as ${this.user}. Give it that user and password, with the permissions of ` +
      "docs/tool-workers.md. Under `kairo dev`, list the worker in tool_runner.tools.workers and restart: its user is " +
      "worker-NAME, and its password is in DATA/dev/nats/users/worker-NAME. Trying again."
    );
  }
}

/** A connection, however long that takes; undefined when the worker is to stop. */
export async function connected(
  options: NodeConnectionOptions,
  troubles: Troubles,
  until: Promise<void>,
): Promise<NatsConnection | undefined> {
  let isOver = false;
  const over = until.then(() => {
    isOver = true;
    return undefined;
  });
  while (!isOver) {
    const attempt = connect(options);
    // One that comes about too late is nobody's.
    void attempt.then((nats) => (isOver ? nats.close() : undefined)).catch(() => {});
    try {
      const nats = await Promise.race([attempt, over]);
      if (nats) return nats;
    } catch (error) {
      troubles.tell(error);
    }
    if (isOver) break;
    let timer: NodeJS.Timeout | undefined;
    const again = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, RETRY_MS);
    });
    await Promise.race([again, over]);
    clearTimeout(timer);
  }
  return undefined;
}

/** Says what is still to be said, and closes the connection, also one to a server that is away. */
export async function leave(nats: NatsConnection): Promise<void> {
  await Promise.race([nats.drain(), pause(CLOSE_MS)]).catch(() => {});
  if (!nats.isClosed()) await Promise.race([nats.close(), pause(CLOSE_MS)]).catch(() => {});
}

/** Keeps no process running. */
function pause(ms: number): Promise<undefined> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(undefined), ms).unref();
  });
}
