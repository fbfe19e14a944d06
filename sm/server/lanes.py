"""Threads for what takes a while: so many for each session, so that a stuck one holds up no other.

A thread cannot be ended. One that nobody waits for any more counts until it ends by itself.
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
    """`each`: threads at once for one session, `total`: for all together. Of one event loop."""

    def __init__(self, each: int, total: int) -> None:
        """Nothing runs yet."""
        self._each, self._total = each, total
        self._running: Counter[str] = Counter()
        self._waiting: list[asyncio.Future[None]] = []

    async def run(self, session: str, act: Callable[[], T]) -> T:
        """What `act` returns, in a thread, as soon as there is room for it."""
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
        self._running -= Counter((session,))  # who has none left is forgotten
        woken, self._waiting = self._waiting, []
        for change in woken:
            if not change.done():
                change.set_result(None)


class _Place:
    """One of those that may run; `free` gives it back, once."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self.taken = False
        self._leave: Callable[[], None] | None = leave
        self._loop = asyncio.get_running_loop()

    def hold(self, act: Callable[[], T]) -> T:
        """In the thread."""
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
