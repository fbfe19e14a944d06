"""Metrics at each scrape. All is read at that moment, and nothing is counted in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import accumulate

from anyio import CapacityLimiter, to_thread
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sm.passes.tally import BOUNDS, Sums
from sm.plugins.metrics.measures import MEASURES, TOOK, TOOK_HELP, Measure
from sm.plugins.metrics.reader import FactsReader
from sm.sessions.machine import Machine
from sm.web.sites import Entrance


class Collector:
    """Metrics of a machine, for a registry. One thread at a time."""

    def __init__(self, machine: Machine) -> None:
        """Read nothing yet."""
        self._reader = FactsReader(machine)
        self._highest: dict[tuple[str, tuple[str, ...]], float] = {}

    def collect(self) -> Iterator[Metric]:
        """Read everything, and return the metrics."""
        facts = self._reader.read()
        for measure in MEASURES:
            samples = add_up(measure.list(facts))
            yield (
                self._make_counter(measure, samples)
                if measure.counts
                else make_gauge(measure, samples)
            )
        if facts.passes:
            yield make_histogram(facts.passes)

    def _make_counter(self, measure: Measure, samples: dict[tuple[str, ...], float]) -> Metric:
        """Make a metric that never falls, although the records behind it may be forgotten."""
        made = CounterMetricFamily(measure.name, measure.help, labels=measure.labels)
        known = {labels for name, labels in self._highest if name == measure.name}
        for labels in dict.fromkeys((*samples, *sorted(known))):
            key = measure.name, labels
            highest = max(samples.get(labels, 0), self._highest.get(key, 0))
            self._highest[key] = highest
            made.add_metric(labels, highest)
        return made


def add_up(samples: Iterable[tuple[tuple[str, ...], float]]) -> dict[tuple[str, ...], float]:
    """Add up one number for each set of labels: words without their own value share `OTHER`."""
    found: dict[tuple[str, ...], float] = {}
    for labels, number in samples:
        words = tuple(map(str, labels))
        found[words] = found.get(words, 0) + number
    return found


def make_gauge(measure: Measure, samples: dict[tuple[str, ...], float]) -> Metric:
    """Make a metric of the present state."""
    made = GaugeMetricFamily(measure.name, measure.help, labels=measure.labels)
    for labels, number in samples.items():
        made.add_metric(labels, number)
    return made


def make_histogram(sums: Sums) -> Metric:
    """Make the metric of how long passes took: each bound counts all passes below it."""
    names = [*map(str, BOUNDS), "+Inf"]
    buckets = list(zip(names, accumulate(sums.took), strict=True))
    made = HistogramMetricFamily(TOOK, TOOK_HELP)
    made.add_metric([], buckets, sum_value=sums.took_s)
    return made


METHODS = ("GET", "HEAD")


def make_app(machine: Machine, entrance: Entrance) -> ASGIApp:
    """Make the application. Scrapes that come together are answered one after another."""
    # Of its own: that of the library has figures of this process, and is one for all of it.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector(machine))
    turns = CapacityLimiter(1)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if refused := _refuse(request, entrance):
            await refused(scope, receive, send)
            return
        made = partial(_encode, registry, request.headers.get("accept", ""))
        text, kind = await to_thread.run_sync(made, limiter=turns)
        headers = {"Content-Type": kind, "Cache-Control": "no-store"}
        await Response(text, headers=headers)(scope, receive, send)

    return answer


def _refuse(request: Request, entrance: Entrance) -> Response | None:
    """Refuse whoever may not read, or asks for something else; return None for all others."""
    if not entrance.find_right(request.scope):
        return PlainTextResponse("a token is needed: send 'Authorization: Bearer …'\n", 401)
    if request.method not in METHODS:
        return PlainTextResponse("not with this method\n", 405, {"Allow": ", ".join(METHODS)})
    return None


def _encode(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return the metrics as the client wants them, and what that format is called."""
    try:
        encode, kind = choose_encoder(accept)
    except (ValueError, TypeError):  # it asks for a version that is none
        encode, kind = choose_encoder("")
    return encode(registry), kind
