"""A worker: announces tools, carries out calls, remembers how they ended."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import signal
import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from .action import Action
from .call import Call
from .connection import closed, connected, first_of, leave

log = logging.getLogger("kairo_worker")

PROTOCOL = 1
QUEUE = "workers"
NAME = re.compile("[A-Za-z0-9_-]+")

Function = Callable[[dict[str, Any], Call], Any] | Callable[[dict[str, Any], Call], Awaitable[Any]]


@dataclass(frozen=True)
class Tool:
    """A tool as agents see it, and the function that carries it out."""

    name: str
    description: str
    schema: dict[str, Any]
    function: Function
    idempotent: bool = False
    read_only: bool = False
    needs_approval: bool = False

    def announced(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.description,
            "schema": self.schema,
            "idempotent": self.idempotent,
            "read_only": self.read_only,
            "needs_approval": self.needs_approval,
        }


class Worker:
    """A replica of a worker, under the name that the configuration of tool-runner lists.

    ``max_parallel`` calls run at once; tool-runner gives others to other replicas, or waits. How calls ended is remembered
    for ``remember_s`` seconds, of at most ``remember`` calls, for a runner that asks again with the same action id.
    """

    def __init__(
        self,
        name: str,
        *,
        max_parallel: int = 16,
        remember: int = 256,
        remember_s: float = 600.0,
        grace_s: float = 20.0,
    ) -> None:
        self.name = name
        self.instance = f"w-{uuid.uuid4().hex}"
        self.max_parallel = max_parallel
        self.remember = remember
        self.remember_s = remember_s
        self.grace_s = grace_s
        self._tools: dict[str, Tool] = {}
        self._started_ms = int(time.time() * 1000)
        self._announce_s = 5.0
        self._actions: OrderedDict[str, Action] = OrderedDict()
        self._refused: dict[str, str] = {}
        self._accepted: set[str] = set()
        self._announce_now = asyncio.Event()
        self._stopping = asyncio.Event()
        self._nats: Client | None = None

    # --- what a program says before it runs ------------------------------------------------------

    def add(self, tool: Tool) -> None:
        """Offers a tool. One of the same name is replaced. Raises ValueError for a name that no tool can have."""
        if not NAME.fullmatch(tool.name):
            raise ValueError(f"{tool.name!r} is no name of a tool: use A-Z, a-z, 0-9, _ and -")
        self._tools[tool.name] = tool

    def tool(
        self,
        *,
        description: str,
        schema: dict[str, Any],
        name: str | None = None,
        idempotent: bool = False,
        read_only: bool = False,
        needs_approval: bool = False,
    ) -> Callable[[Function], Function]:
        """Offers the decorated function as a tool: ``async def f(arguments, call)``, or a plain one, which gets a thread."""

        def decorate(function: Function) -> Function:
            called = name or function.__name__
            self.add(Tool(called, description, schema, function, idempotent, read_only, needs_approval))
            return function

        return decorate

    # --- running ---------------------------------------------------------------------------------

    async def run(self, servers: str | list[str] = "nats://127.0.0.1:4222", **options: Any) -> None:
        """Works until SIGTERM, SIGINT or :meth:`stop`. ``options`` go to ``nats.connect``, such as user and password.

        A login that is refused, and a server that is away, are tried again for as long as that takes.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        while not self._stopping.is_set():
            client = await connected(self, servers, options, self._stopping)
            if client is not None:
                await self._work(client)

    async def _work(self, client: Client) -> None:
        """Until the worker is stopped, or the connection is closed for good, as after a login that is refused later."""
        self._nats = client
        calls = await self._listen()
        announcing = asyncio.create_task(self._keep_announcing())
        await first_of(self._stopping.wait(), closed(client))
        announcing.cancel()
        if client.is_closed:
            return
        await self._announce(leaving=True)
        for subscription in calls:
            await subscription.unsubscribe()
        await self._finish()
        await leave(client)

    def stop(self) -> None:
        """Takes no more calls; :meth:`run` returns when those that run have ended, or after ``grace_s``."""
        self._stopping.set()

    async def _listen(self) -> list[Subscription]:
        client = self._client()
        await client.subscribe(f"kairo.worker.{self.name}.hello", cb=self._hello)
        await client.subscribe(f"kairo.worker.{self.name}.announced.{self.instance}", cb=self._verdict)
        # Those that run, where this connection took the place of another one.
        for key, action in self._actions.items():
            action.subscription = await client.subscribe(f"kairo.worker.{self.name}.action.{key}", cb=self._ordered)
        calls = [f"kairo.worker.{self.name}.call.{tool}" for tool in self._tools]
        return [await client.subscribe(subject, queue=QUEUE, cb=self._called) for subject in calls]

    async def _finish(self) -> None:
        open_ones = [asyncio.ensure_future(one.heard()) for one in self._actions.values() if not one.is_settled]
        if open_ones:
            _, left = await asyncio.wait(open_ones, timeout=self.grace_s)
            for one in left:
                one.cancel()
        for action in self._actions.values():
            action.close()

    def _client(self) -> Client:
        if self._nats is None:
            raise RuntimeError("the worker does not run")
        return self._nats

    # --- announcing ------------------------------------------------------------------------------

    async def _keep_announcing(self) -> None:
        while True:
            self._announce_now.clear()
            await self._announce()
            try:
                await asyncio.wait_for(self._announce_now.wait(), self._announce_s)
            except asyncio.TimeoutError:
                self._forget()

    async def _announce(self, leaving: bool = False) -> None:
        announcement = {
            "protocol": PROTOCOL,
            "instance": self.instance,
            "started_ms": self._started_ms,
            "leaving": leaving,
            "tools": [tool.announced() for tool in self._tools.values()],
        }
        await self._publish("announce", announcement)

    async def _hello(self, _: Msg) -> None:
        self._announce_now.set()

    async def reconnected(self) -> None:
        """Announces itself again: whoever listens may have forgotten it."""
        self._announce_now.set()

    async def _verdict(self, message: Msg) -> None:
        verdict = json.loads(message.data)
        self._announce_s = max(verdict.get("announce_ms", 5_000) / 1000, 0.05)
        refused = {one["tool"]: one["reason"] for one in verdict.get("refused", [])}
        if verdict.get("error"):
            refused[self.name] = verdict["error"]
        for what, reason in refused.items():
            if self._refused.get(what) != reason:
                log.warning("%s is not offered: %s", what, reason)
        self._refused = refused
        accepted = set(verdict.get("accepted", []))
        if accepted != self._accepted:
            log.info("offered: %s", ", ".join(sorted(accepted)))
        self._accepted = accepted

    # --- calls -----------------------------------------------------------------------------------

    async def _called(self, message: Msg) -> None:
        try:
            asked = json.loads(message.data)
            call = Call.parse(asked)
            arguments = asked["arguments"]
        except (KeyError, TypeError, ValueError) as error:
            await message.respond(encoded({"type": "refused", "message": f"the call cannot be read: {error}"}))
            return
        known = self._actions.get(call.action_id)
        if known is not None:
            await message.respond(self._accepted_answer())
            known.repeat()
            return
        tool = self._tools.get(call.tool)
        if tool is None:
            await message.respond(encoded({"type": "refused", "message": f"this worker has no tool {call.tool}"}))
            return
        if self._stopping.is_set() or sum(not one.is_over for one in self._actions.values()) >= self.max_parallel:
            await message.respond(encoded({"type": "busy"}))
            return
        action = Action(call, lambda said: self._said(call.action_id, said))
        self._actions[call.action_id] = action
        # Before the answer, so that whoever has the answer can speak to us of the action.
        subject = f"kairo.worker.{self.name}.action.{call.action_id}"
        action.subscription = await self._client().subscribe(subject, cb=self._ordered)
        await message.respond(self._accepted_answer())
        action.begin(tool.function, arguments)
        self._forget()

    async def _ordered(self, message: Msg) -> None:
        action = self._actions.get(message.subject.rsplit(".", 1)[-1])
        order = json.loads(message.data).get("type")
        if action is None:
            return
        if order == "attach":
            await message.respond(self._accepted_answer())
            action.repeat()
        elif order == "cancel":
            action.cancel()
        elif order == "acknowledge":
            action.acknowledge()

    def _accepted_answer(self) -> bytes:
        return encoded({"type": "accepted", "instance": self.instance})

    async def _said(self, action_id: str, said: dict[str, Any]) -> None:
        await self._publish(f"said.{action_id}", said)

    async def _publish(self, subject: str, said: dict[str, Any]) -> None:
        try:
            await self._client().publish(f"kairo.worker.{self.name}.{subject}", encoded(said))
        except nats.errors.Error as error:
            log.warning("nothing could be said on %s: %s", subject, error)

    def _forget(self) -> None:
        """Forgets how calls ended, the oldest first: after a while, and what is too many."""
        over = [key for key, action in self._actions.items() if action.is_over]
        oldest = time.monotonic() - self.remember_s
        for at, key in enumerate(over):
            if len(over) - at > self.remember or self._actions[key].over_since < oldest:
                self._actions.pop(key).close()


def encoded(said: dict[str, Any]) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode()

