"""The connection of a worker: made, kept, and left in time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

import nats.errors
from nats.aio.client import Client

if TYPE_CHECKING:
    from .worker import Worker

log = logging.getLogger("kairo_worker")

# The same trouble is not logged more often.
TROUBLE_PAUSE_S = 30.0
# How often it is looked whether a connection is closed for good.
LOOK_S = 0.2
# How long a connection may take to close.
CLOSE_S = 0.5

REFUSED = (
    "nats-server refused the login of this worker as %s. Give it that user and password, with the permissions of "
    "docs/tool-workers.md. Under `kairo dev`, list the worker in tool_runner.tools.workers and restart: its user is "
    "worker-NAME, and its password is in DATA/dev/nats/users/worker-NAME. Trying again."
)


async def connected(
    worker: Worker, servers: str | list[str], options: dict[str, Any], stopping: asyncio.Event
) -> Client | None:
    """A connection, however long that takes; None when the worker is to stop."""
    client = Client()
    options = {"error_cb": Troubles(options.get("user")).tell, **options}
    attempt = asyncio.ensure_future(
        client.connect(
            servers,
            name=f"kairo-worker {worker.name}",
            max_reconnect_attempts=-1,
            reconnected_cb=worker.reconnected,
            **options,
        )
    )
    await first_of(attempt, stopping.wait())
    if attempt.done() and not attempt.cancelled():
        attempt.result()
        return client
    await _ended(client.close())
    return None


class Troubles:
    """Says what is wrong with a connection, and what to do about it."""

    def __init__(self, user: str | None) -> None:
        self._user = user or "nobody"
        self._told: dict[str, float] = {}

    async def tell(self, error: Exception) -> None:
        is_refusal = isinstance(error, nats.errors.AuthorizationError) or "authorization violation" in str(error).lower()
        what = "the login is refused" if is_refusal else f"{type(error).__name__}: {error}"
        now = time.monotonic()
        if now - self._told.get(what, float("-inf")) < TROUBLE_PAUSE_S:
            return
        self._told = {**self._told, what: now} if len(self._told) < 100 else {what: now}
        if is_refusal:
            log.error(REFUSED, self._user)
        else:
            log.warning("the connection to nats-server: %s", what)


async def first_of(*awaited: Awaitable[Any]) -> None:
    """Waits for the first, and cancels the others."""
    tasks = [asyncio.ensure_future(one) for one in awaited]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def closed(client: Client) -> None:
    """Returns when a connection is closed for good."""
    while not client.is_closed:
        await asyncio.sleep(LOOK_S)


async def leave(client: Client) -> None:
    """Says what is still to be said, and closes the connection, also one to a server that is away."""
    if client.is_connected:
        await _ended(client.flush())
    await _ended(client.close())


async def _ended(closing: Awaitable[Any]) -> None:
    try:
        await asyncio.wait_for(closing, CLOSE_S)
    except (asyncio.TimeoutError, nats.errors.Error, OSError) as error:
        log.debug("the connection was left: %s", error)
