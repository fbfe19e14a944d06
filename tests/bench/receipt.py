"""From Enter in the real client's composer to the receipt that its prompt hook leaves."""

from __future__ import annotations

import time
from collections.abc import Iterator

from sm.messages import queue
from sm.store import lock
from sm.store.files import write_atomic
from tests.bench.client import LOOK_S, asked, real_agents, wait_ready
from tests.bench.measure import Bench, Figure
from tests.helpers import wait_for
from tests.real.managed import Managed


def figures(bench: Bench) -> Iterator[Figure]:
    """The receipt, beside the client's own request to its model for the same prompt."""
    with real_agents() as start:
        if start is None:
            return
        managed = start(bench.folder)
        _take(managed)
        found = [_take(managed) for _ in range(bench.rounds(40, 10))]
    yield Figure(
        name="Enter to receipt",
        unit="ms",
        samples=[receipt for receipt, _ in found],
        beside="Enter to the model's request",
        others=[request for _, request in found],
    )


def _take(managed: Managed) -> tuple[float, float]:
    """Milliseconds from before the key is pressed: until the receipt, until the request."""
    wait_ready(managed)
    ident, directory = queue.make_id(), managed.session.dir
    text = f"A prompt like any other, {ident}."
    write_atomic(directory.expect, f"{ident} exact\n{text}\n\n")
    managed.paste(text)
    managed.wait_screen(lambda screen: screen.draft == text, "the text in the composer")
    receipt = directory.accepted / ident
    with lock.hold(directory.delivery_lock):  # or one of no message that is known is cleared
        started = time.monotonic()
        managed.keys("Enter")
        wait_for(receipt.exists, "the receipt", every_s=LOOK_S)
        received = time.monotonic()
        receipt.unlink()
    request = asked(managed, text).at_s
    return (received - started) * 1000, (request - started) * 1000
