"""Two tools of an imaginary shop: python billing.py, with NATS_URL, NATS_USER and NATS_PASSWORD set."""

import asyncio
import logging
import os
from typing import Any

from kairo_worker import Call, ToolError, Worker

worker = Worker("billing")
paid = {"i-1": 2500, "i-2": 990}
refunded: dict[str, int] = {}  # By the action: in a real shop, a column of a table.


@worker.tool(
    description="What was paid on an invoice, in cents.",
    schema={"type": "object", "required": ["invoice"], "properties": {"invoice": {"type": "string"}}},
    read_only=True,
)
def invoice(arguments: dict[str, Any], call: Call) -> dict[str, Any]:
    if arguments["invoice"] not in paid:
        raise ToolError(f"there is no invoice {arguments['invoice']}", kind="not_found")
    return {"invoice": arguments["invoice"], "cents": paid[arguments["invoice"]]}


@worker.tool(
    description="Pays money back on an invoice.",
    schema={
        "type": "object",
        "required": ["invoice", "cents"],
        "properties": {"invoice": {"type": "string"}, "cents": {"type": "integer", "minimum": 1}},
    },
    idempotent=True,  # The action id is the key: a call that comes again pays nothing more.
    needs_approval=True,
)
async def refund(arguments: dict[str, Any], call: Call) -> dict[str, Any]:
    call.progress(0.5, "asking the bank")
    refunded.setdefault(call.action_id, arguments["cents"])
    return {"refunded": refunded[call.action_id]}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    options = {"user": os.environ.get("NATS_USER"), "password": os.environ.get("NATS_PASSWORD")}
    asyncio.run(worker.run(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"), **options))
