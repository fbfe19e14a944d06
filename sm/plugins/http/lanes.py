"""Runs slow work in threads: a few in each lane, so that a stuck session does not block others.

A thread cannot be ended. An abandoned one counts until it ends by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

T = TypeVar("T")


class Lanes:
    """Allows `each` threads at once in one lane, and `total` in all. For one event loop."""

    def __init__(self, each: int, total: int) -> None:
        """Begin without a running thread."""
        self._each, self._total = each, total
        self._running: Counter[str] = Counter()
        self._waiting: list[asyncio.Future[None]] = []

    async def enter(self, lane: str) -> Place:
        """Wait until there is room for one more thread; who enters has to run something."""
        while not self._has_room(lane):
            await self._a_change()
        self._running[lane] += 1
        return Place(lambda: self._leave(lane))

    def _has_room(self, lane: str) -> bool:
        return self._running[lane] < self._each and self._running.total() < self._total

    async def _a_change(self) -> None:
        change = asyncio.get_running_loop().create_future()
        self._waiting.append(change)
        await change

    def _leave(self, lane: str) -> None:
        self._running -= Counter((lane,))  # drops a lane without threads
        woken, self._waiting = self._waiting, []
        for change in woken:
            if not change.done():
                change.set_result(None)


class Place:
    """Room for one running thread, which is given back once."""

    def __init__(self, leave: Callable[[], None]) -> None:
        """Take the room; `leave` gives it back."""
        self._taken = False
        self._leave: Callable[[], None] | None = leave
        self._loop = asyncio.get_running_loop()

    async def run(self, act: Callable[[], T]) -> T:
        """Run `act` in a thread and return its result."""
        try:
            return await to_thread.run_sync(
                lambda: self._hold(act), abandon_on_cancel=True, limiter=CapacityLimiter(math.inf)
            )
        finally:
            if not self._taken:
                self._free()

    def _hold(self, act: Callable[[], T]) -> T:
        """Run in the thread."""
        self._taken = True
        try:
            return act()
        finally:
            with contextlib.suppress(RuntimeError):  # the server has stopped meanwhile
                self._loop.call_soon_threadsafe(self._free)

    def _free(self) -> None:
        leave, self._leave = self._leave, None
        if leave:
            leave()
