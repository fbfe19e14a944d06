"""Runs slow work in threads: a few for each session, so that a stuck one does not block others.

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
    """Allows `each` threads at once for one session, and `total` for all. For one event loop."""

    def __init__(self, each: int, total: int) -> None:
        """Begin without a running thread."""
        self._each, self._total = each, total
        self._running: Counter[str] = Counter()
        self._waiting: list[asyncio.Future[None]] = []

    async def run(self, session: str, act: Callable[[], T]) -> T:
        """Run `act` in a thread as soon as there is room, and return its result."""
        while not self._has_room(session):
            await self._a_change()
        self._running[session] += 1
        place = _Place(lambda: self._leave(session))
        try:
            return await to_thread.run_sync(
                lambda: place.hold(act), abandon_on_cancel=True, limiter=CapacityLimiter(math.inf)
            )
        finally:
            if not place.taken:
                place.free()

    def _has_room(self, session: str) -> bool:
        return self._running[session] < self._each and self._running.total() < self._total

    async def _a_change(self) -> None:
        change = asyncio.get_running_loop().create_future()
        self._waiting.append(change)
        await change

    def _leave(self, session: str) -> None:
        self._running -= Counter((session,))  # drops a session without threads
        woken, self._waiting = self._waiting, []
        for change in woken:
            if not change.done():
                change.set_result(None)


class _Place:
    """The place of one running thread; `free` gives it back, once."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self.taken = False
        self._leave: Callable[[], None] | None = leave
        self._loop = asyncio.get_running_loop()

    def hold(self, act: Callable[[], T]) -> T:
        """Run in the thread."""
        self.taken = True
        try:
            return act()
        finally:
            with contextlib.suppress(RuntimeError):  # the server has stopped meanwhile
                self._loop.call_soon_threadsafe(self.free)

    def free(self) -> None:
        leave, self._leave = self._leave, None
        if leave:
            leave()
