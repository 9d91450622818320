"""A call of a tool: what its function sees of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# More often nobody would look.
PROGRESS_PAUSE_S = 0.2


class ToolError(Exception):
    """Ends a call as failed, with a message that the agent is shown.

    ``kind`` is ``failed``, ``invalid_arguments``, ``not_found`` or ``in_doubt``.
    """

    def __init__(self, message: str, kind: str = "failed") -> None:
        super().__init__(message)
        self.kind = kind


@dataclass
class Call:
    """What is known of a call besides its arguments."""

    action_id: str
    """The idempotency key: a call that comes again has the same."""
    tool: str
    agent: str
    user: str | None
    """On whose behalf; None where that is not known."""
    thread_id: str
    time: str
    """When the agent decided on it, RFC 3339: the same when it comes again."""
    timeout_ms: int
    beat_ms: int
    max_result_bytes: int
    canceled: threading.Event = field(default_factory=threading.Event)
    """Set when the call is to stop. Async functions are cancelled besides; others look here."""
    _say: Callable[[dict[str, Any]], None] = field(default=lambda _: None, repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)
    _told: float = field(default=float("-inf"), repr=False)

    @classmethod
    def parse(cls, call: dict[str, Any]) -> Call:
        """Raises KeyError, TypeError or ValueError for what is no call."""
        user = call.get("user")
        return cls(
            action_id=str(call["action_id"]),
            tool=str(call["tool"]),
            agent=str(call.get("agent", "")),
            user=None if user is None else str(user),
            thread_id=str(call.get("thread_id", "")),
            time=str(call.get("time", "")),
            timeout_ms=int(call.get("timeout_ms", 60_000)),
            beat_ms=max(int(call.get("beat_ms", 2_000)), 10),
            max_result_bytes=int(call.get("max_result_bytes", 262_144)),
        )

    def progress(self, fraction: float | None = None, message: str | None = None) -> None:
        """Says how far the call is, from 0 to 1, in words, or both. From any thread; what comes too often is left out."""
        now = time.monotonic()
        if self._loop is None or now - self._told < PROGRESS_PAUSE_S:
            return
        self._told = now
        said = {"type": "progress", "fraction": fraction, "message": message}
        self._loop.call_soon_threadsafe(self._say, said)
