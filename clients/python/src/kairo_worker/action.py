"""One action: a call that is carried out, its beats, and how it ended."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from nats.aio.subscription import Subscription

from .call import Call, ToolError

# How often an end is said that nobody acknowledges: whoever asked is gone, and the next one asks again.
MOST_REPEATS = 30


class Action:
    """Begun once. Says at each beat that it is alive, then how it ended until that is acknowledged."""

    def __init__(self, call: Call, say: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        self.call = call
        self.over_since = 0.0
        self.subscription: Subscription | None = None
        self._say = say
        self._end: dict[str, Any] | None = None
        self._acknowledged = asyncio.Event()
        self._again = asyncio.Event()
        self._running: asyncio.Task[Any] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._is_async = True
        self._repeats = 0

    @property
    def is_over(self) -> bool:
        return self._end is not None

    @property
    def is_settled(self) -> bool:
        """Whether it is over, and that was heard or said often enough."""
        return self._acknowledged.is_set() or self._repeats >= MOST_REPEATS

    def begin(self, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
        loop = asyncio.get_running_loop()
        self.call._loop = loop
        self.call._say = lambda said: None if self.is_over else _spawn(self._say(said))
        self._is_async = inspect.iscoroutinefunction(function)
        self._running = loop.create_task(self._run(function, arguments))
        self._beating = loop.create_task(self._beat())
        # Whoever asked gives up then, and may be gone.
        loop.call_later(self.call.timeout_ms / 1000 + self.call.beat_ms / 1000, self.cancel)

    def cancel(self) -> None:
        """Asks it to stop. A thread cannot be stopped: its function looks at ``call.canceled``."""
        if self.is_over or self.call.canceled.is_set():
            return
        self.call.canceled.set()
        if self._is_async and self._running is not None:
            self._running.cancel()

    def repeat(self) -> None:
        """Says again how it ended, or soon that it is alive: somebody else listens now."""
        self._acknowledged.clear()
        self._again.set()

    def acknowledge(self) -> None:
        """Whoever asked has heard how it ended."""
        if self.is_over:
            self._acknowledged.set()

    async def heard(self) -> None:
        """Waits until somebody has heard how it ended."""
        await self._acknowledged.wait()

    def close(self) -> None:
        for task in (self._running, self._beating):
            if task is not None:
                task.cancel()
        if self.subscription is not None:
            _spawn(self.subscription.unsubscribe())
            self.subscription = None

    async def _run(self, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
        try:
            if self._is_async:
                value = await function(arguments, self.call)
            else:
                value = await asyncio.to_thread(function, arguments, self.call)
            end = self._result(value)
        except asyncio.CancelledError:
            end = {"type": "stopped"}
        except ToolError as error:
            end = {"type": "error", "kind": error.kind, "message": str(error)}
        except Exception as error:  # Whatever it is, the agent is told.
            end = {"type": "error", "kind": "failed", "message": f"{type(error).__name__}: {error}"}
        self._end = end
        self.over_since = time.monotonic()
        self._again.set()

    def _result(self, value: Any) -> dict[str, Any]:
        end = {"type": "result", "value": value}
        size = len(json.dumps(value))
        if size > self.call.max_result_bytes:
            message = f"the tool ran, but its result takes {size} bytes of at most {self.call.max_result_bytes}"
            return {"type": "error", "kind": "too_large", "message": message}
        return end

    async def _beat(self) -> None:
        while True:
            self._again.clear()
            if self._end is None:
                await self._say({"type": "alive"})
            elif not self.is_settled:
                self._repeats += 1
                await self._say(self._end)
            pause = None if self._end is not None and self.is_settled else self.call.beat_ms / 1000
            try:
                await asyncio.wait_for(self._again.wait(), pause)
                self._repeats = 0
            except asyncio.TimeoutError:
                pass


_spawned: set[asyncio.Task[Any]] = set()


def _spawn(task: Awaitable[Any]) -> None:
    """The loop itself keeps no task alive."""
    spawned = asyncio.ensure_future(task)
    _spawned.add(spawned)
    spawned.add_done_callback(_spawned.discard)
