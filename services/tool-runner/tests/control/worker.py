"""A worker for tests: what it did stands in files of the folder that it is given, and it goes on when one says so."""

import asyncio
import logging
import os
import pathlib
import sys
import time

from kairo_worker import Tool, ToolError, Worker

name, folder, flavor = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
worker = Worker(name, max_parallel=2)
ANYTHING = {"type": "object"}


def note(what: str, text: str) -> None:
    with open(folder / what, "a") as file:
        file.write(f"{text}\n")


async def until_told(call, what: str) -> dict:
    note(what, call.action_id)
    call.progress(0.25, f"did {what}")
    try:
        while not (folder / "go").exists():
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        note("stopped", call.action_id)
        raise
    return {"did": what, "by": os.getpid()}


async def pay(arguments, call):
    return await until_told(call, "pay")


async def refund(arguments, call):
    return await until_told(call, "refund")


def count(arguments, call):
    note("count", call.action_id)
    while not call.canceled.is_set():
        time.sleep(0.01)
    return "counted until it was stopped"


def slow(arguments, call):
    """Does not look whether it is to stop."""
    note("slow", call.action_id)
    while not (folder / "go").exists():
        time.sleep(0.01)
    return {"did": "slow"}


async def fail(arguments, call):
    if arguments["how"] == "large":
        return "x" * 1_000_000
    if arguments["how"] == "said":
        raise ToolError("there is none", kind="not_found")
    raise RuntimeError("oops")


async def echo(arguments, call):
    return {"arguments": arguments, "action_id": call.action_id, "agent": call.agent, "thread_id": call.thread_id}


number = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
worker.add(Tool("echo", f"Says what it was told ({flavor}).", number, echo, read_only=True))
worker.add(Tool("pay", "Pays.", ANYTHING, pay))
worker.add(Tool("refund", "Pays back.", ANYTHING, refund, idempotent=True))
worker.add(Tool("count", "Counts.", ANYTHING, count))
worker.add(Tool("slow", "Takes its time.", ANYTHING, slow))
worker.add(Tool("fail", "Fails.", ANYTHING, fail))
if flavor == "bad":
    worker.add(Tool("crooked", "Has no schema.", {"type": "object", "properties": 3}, echo))
logging.basicConfig(level=logging.INFO)
asyncio.run(worker.run(os.environ["NATS_URL"], user=os.environ["NATS_USER"], password=os.environ["NATS_PASSWORD"]))
