// A tool of an imaginary shop: npm run build && node examples/billing.mjs, with NATS_URL, NATS_USER and NATS_PASSWORD set.
import { ToolError, Worker } from "../dist/index.js";

const paid = new Map([["i-1", 2500], ["i-2", 990]]);

const worker = new Worker("billing").add({
  name: "invoice",
  description: "What was paid on an invoice, in cents.",
  schema: { type: "object", required: ["invoice"], properties: { invoice: { type: "string" } } },
  readOnly: true,
  run: async ({ invoice }, call) => {
    call.progress(0.5, "looking");
    if (!paid.has(invoice)) throw new ToolError(`there is no invoice ${invoice}`, "not_found");
    return { invoice, cents: paid.get(invoice) };
  },
});

const { NATS_URL: servers = "nats://127.0.0.1:4222", NATS_USER: user, NATS_PASSWORD: pass } = process.env;
await worker.run({ servers, user, pass });
