// A worker for tests, as worker.py is: what it did stands in files of the folder that it is given.
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const [kit, name, folder] = process.argv.slice(2);
const { ToolError, Worker } = await import(kit);
const note = (what, text) => appendFileSync(`${folder}/${what}`, `${text}\n`);

const untilTold = (what) => async (args, call) => {
  note(what, call.actionId);
  call.progress(0.25, `did ${what}`);
  while (!existsSync(`${folder}/go`)) {
    if (call.signal.aborted) note("stopped", call.actionId);
    call.signal.throwIfAborted();
    await sleep(10);
  }
  return { did: what };
};

const anything = { type: "object" };
const worker = new Worker(name, { log: console.log })
  .add({
    name: "echo",
    description: "Says what it was told.",
    schema: { type: "object", properties: { n: { type: "integer" } }, additionalProperties: false },
    readOnly: true,
    run: (args, call) => ({ arguments: args, action_id: call.actionId, agent: call.agent, thread_id: call.threadId }),
  })
  .add({ name: "pay", description: "Pays.", schema: anything, run: untilTold("pay") })
  .add({ name: "refund", description: "Pays back.", schema: anything, idempotent: true, run: untilTold("refund") })
  .add({
    name: "fail",
    description: "Fails.",
    schema: anything,
    run: () => {
      throw new ToolError("there is none", "not_found");
    },
  });
const { NATS_URL: servers, NATS_USER: user, NATS_PASSWORD: pass } = process.env;
await worker.run({ servers, user, pass });
