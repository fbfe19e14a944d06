"""Many short messages to one real client, until it has accepted all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from sm.messages import delivery
from tests.bench.client import asked, hold_turn, real_agents, type_by_hand, wait_ready
from tests.bench.measure import Bench, Figure
from tests.helpers import wait_for
from tests.real.managed import Managed

BY_HAND = 10
"""Messages; more would only take longer."""


def figures(bench: Bench) -> Iterator[Figure]:
    """To an agent that is idle at first, to one whose turn ends once all are queued, by hand."""
    count = bench.rounds(1000, 200)
    with real_agents() as start:
        if start is None:
            return
        managed = start(bench.folder)
        by_hand = _by_hand(managed)
        for mood in ("idle", "busy"):
            rate, requests = _all(managed, mood, count)
            name = f"{count:,} messages to {mood} agent"
            yield Figure(
                name=name,
                unit="/s",
                samples=[rate],
                beside="send-keys, 0.3 s, Enter: asked",
                others=[by_hand],
            )
            yield Figure(name=f"{name}: model requests", unit="", samples=[float(requests)])


def _all(managed: Managed, mood: str, count: int) -> tuple[float, int]:
    """Messages a second, and how often the model was asked for them."""
    wait_ready(managed)
    release: Callable[[], None] = hold_turn(managed).set if mood == "busy" else lambda: None
    before = len(managed.api.main)
    texts = [f"<{mood} {number}> Mind this as well." for number in range(count)]
    started = time.monotonic()
    for text in texts:
        managed.send(text)
    release()
    wait_for(lambda: delivery.is_at_rest(managed.session), "all to be accepted", 600.0)
    took = time.monotonic() - started
    asked(managed, texts[-1])
    last = managed.api.main[-1]
    assert all(last.appearances(text) == 1 for text in texts)
    return count / took, len(managed.api.main) - before


def _by_hand(managed: Managed) -> float:
    wait_ready(managed)
    started = time.monotonic()
    for number in range(BY_HAND):
        type_by_hand(managed, text := f"By hand, {number}.")
        asked(managed, text)
    return BY_HAND / (time.monotonic() - started)
