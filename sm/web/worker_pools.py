"""Worker pools: slow work in threads, a few at a time in each pool.

Work that is stuck holds up its own pool and no other. A thread cannot be ended: one that nobody
waits for any more counts until it ends by itself.
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


class WorkerPools:
    """Allows `each` threads at once in one pool, and `total` in all. For one event loop."""

    def __init__(self, each: int, total: int) -> None:
        """Begin without a running thread."""
        self._each, self._total = each, total
        self._running: Counter[str] = Counter()
        self._waiting: list[asyncio.Future[None]] = []

    async def enter(self, pool: str) -> Worker:
        """Wait until there is room for one more thread; whoever enters has to run something."""
        while self._running[pool] >= self._each or self._running.total() >= self._total:
            change = asyncio.get_running_loop().create_future()
            self._waiting.append(change)
            await change
        self._running[pool] += 1
        return Worker(lambda: self._leave(pool))

    def _leave(self, pool: str) -> None:
        self._running -= Counter((pool,))  # drops a pool without threads
        woken, self._waiting = self._waiting, []
        for change in woken:
            if not change.done():
                change.set_result(None)


class Worker:
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
