"""From a word for people in a pass to the server of their service; and what that pass pays."""

from __future__ import annotations

import time
from collections.abc import Iterator

from msgspec import structs

from sm.plugins.notify.channel import Services
from sm.plugins.notify.entry import open_notify
from sm.plugins.notify.model import Memory
from sm.plugins.notify.outbox import Post
from sm.store import lock
from sm.testing.channel import QUESTION, make_session
from tests.bench.measure import Bench, Figure
from tests.e2e.stage import make_stage
from tests.helpers import wait_for
from tests.plugins.notify.service import Service, end_notifiers, serve

BUDGET_MS = 2000
PUT_MS, LOOK_MS = 20, 0.2


def figures(bench: Bench) -> Iterator[Figure]:
    """With a notifier that has to be started, and with one that is at work."""
    root = bench.folder / "state"
    root.mkdir(mode=0o700)
    with serve() as service:
        settings: dict[str, object] = {
            "notify": {"channels": {"phone": {"url": service.url}}},
            "state_root": str(root),
        }
        stage = make_stage(bench.folder, auto=False, settings=settings)
        services = open_notify(make_session(stage.project))
        assert services
        try:
            yield from _figures(bench, services, service)
        finally:
            end_notifiers()


def _figures(bench: Bench, services: Services, service: Service) -> Iterator[Figure]:
    post, puts = Post(services.session.root), list[float]()
    first, next_ones = list[float](), list[float]()
    for number in range(bench.rounds(15, 5)):
        end_notifiers()
        wait_for(lambda: not lock.is_held(post.lock), "the last one has gone")
        post.set_due(None)
        first.append(_tell(services, service, f"first {number}", puts))
        next_ones.append(_tell(services, service, f"next {number}", puts))
    yield Figure(
        name="word put to service asked",
        unit="ms",
        samples=first,
        budget=BUDGET_MS,
        beside="the notifier is at work already",
        others=next_ones,
    )
    yield Figure(name="… what the pass waits for", unit="ms", samples=puts, budget=PUT_MS)
    looks = []
    for _ in range(bench.rounds(200, 50)):
        began = time.perf_counter()
        services.listen()
        looks.append((time.perf_counter() - began) * 1e3)
    yield Figure(name="… a pass with nothing to tell", unit="ms", samples=looks, budget=LOOK_MS)


def _tell(services: Services, service: Service, ident: str, puts: list[float]) -> float:
    """Tell something of a cause of its own; returns milliseconds until the service has heard it."""
    for outbox in Post(services.session.root).list_all():
        outbox.remember(Memory())  # or it would be one of too many in a minute
    heard, letters = len(service.heard), "".join(chr(97 + byte % 26) for byte in ident.encode())
    began = time.perf_counter()
    services.ask(structs.replace(QUESTION, id=ident, shortly=f"asks {letters}"))
    puts.append((time.perf_counter() - began) * 1e3)
    wait_for(lambda: len(service.heard) > heard, "the service has heard it", every_s=0.001)
    return (time.perf_counter() - began) * 1e3
