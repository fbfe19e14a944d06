"""Threads of the server: who waits for one, and for how many at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from sm.web.worker_pools import WorkerPools

T = TypeVar("T")


async def run(pools: WorkerPools, pool: str, act: Callable[[], T]) -> T:
    worker = await pools.enter(pool)
    return await worker.run(act)


async def until(condition: threading.Event) -> None:
    assert await asyncio.to_thread(condition.wait, 20)


def test_a_thread_that_nobody_waits_for_any_more_still_counts() -> None:
    """Else a session that is stuck has one more of them with each request, without end."""
    begun, end, second = threading.Event(), threading.Event(), threading.Event()

    def stuck() -> None:
        begun.set()
        end.wait(20)

    async def requests() -> None:
        pools = WorkerPools(each=1, total=2)
        abandoned = asyncio.create_task(run(pools, "ann", stuck))
        await until(begun)
        abandoned.cancel()
        await asyncio.gather(abandoned, return_exceptions=True)
        waiting = asyncio.create_task(run(pools, "ann", second.set))
        await run(pools, "bob", lambda: None)  # has a pool of its own
        assert not second.is_set()
        assert not waiting.done()
        end.set()
        await waiting

    asyncio.run(requests())
    assert second.is_set()


def test_who_goes_before_his_turn_takes_no_place() -> None:
    end = threading.Event()

    async def requests() -> None:
        pools = WorkerPools(each=1, total=1)
        first = asyncio.create_task(run(pools, "ann", lambda: end.wait(20)))
        others = [asyncio.create_task(run(pools, "ann", lambda: None)) for _ in range(5)]
        await asyncio.wait(others, timeout=0.05)
        for other in others[:4]:
            other.cancel()
        end.set()
        await asyncio.gather(first, others[4])
        assert await run(pools, "bob", lambda: 7) == 7

    asyncio.run(requests())
