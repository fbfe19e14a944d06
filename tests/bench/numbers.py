"""The page of numbers and the metrics, beside 200 sessions and a journal of 50,000 events."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import cycle, islice

import pytest
from msgspec import json, structs

from sm.issues.look.snapshot import look
from sm.plugins.cost.settings import find_ledger
from sm.plugins.http.app import make_application
from sm.plugins.page import numbers_desk as numbers_data
from sm.sessions.history import StepVerb
from sm.sessions.project import Project
from sm.store import events
from sm.store.events import Event, RotationStep
from sm.store.files import append_line
from sm.web.guard import GuardRules
from tests.bench.crowd import make_crowd
from tests.bench.measure import Bench, Figure, Take, call_ms, in_turns
from tests.plugins.page.client import Browser
from tests.plugins.page.past import CI, REVIEW, spend, use

SCRAPE_MS, PAGE_MS = 100.0, 150.0
EVENTS, EVERY_S = 50_000, 50.0
ROUND = (
    events.Started(title="Mend it"),
    events.Decided(row="ci-failed", phase=CI, written_at=1.0),
    events.StepDone(verb=StepVerb.INJECT, row="ci-failed", result="ci-failed"),
    events.MessageSent(id="0" * 16, mode="sequential", status="accepted"),
    events.Rotation(step=RotationStep.FINISHED, took_s=9.0),
    events.Decided(row="ci-passed", phase=CI, written_at=2.0),
    events.StepDone(verb=StepVerb.INJECT, row="ci-passed", result="ci-passed"),
    events.Decided(row="approved", phase=REVIEW, written_at=3.0),
    events.StepDone(verb=StepVerb.INJECT, row="approved", result="approved"),
)


def figures(bench: Bench) -> Iterator[Figure]:
    """A scrape and the page, asked for after an event; beside them the first ones of a server."""
    [count] = bench.sizes((200,), quick=(200,))
    crowd = make_crowd(bench.folder / "crowd", count, awaiting=True)
    with crowd.held, pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers_data, "FRESH_S", 0.0)
        project = crowd.project
        path = find_ledger(project.machine.settings)
        path.parent.mkdir(parents=True, exist_ok=True)
        _fill(project, count, 500 if bench.once else EVENTS)
        look(project)
        paths = "/metrics", "/page/numbers", "/page/numbers/time.svg"
        takes = [_take(project, path) for path in paths]
        first = [[take() for _ in range(1)] for take in takes]
        served = in_turns(bench.rounds(21, 7), *takes)
    what = f"{count} sessions, {EVENTS:,} events"
    for name, budget, begun, samples in zip(
        ("scrape of /metrics", "page of numbers served", "one of its pictures"),
        (SCRAPE_MS, PAGE_MS, PAGE_MS),
        first,
        served,
        strict=True,
    ):
        yield Figure(
            name=f"{name}, {what}",
            unit="ms",
            samples=samples,
            budget=budget,
            beside="the first of a server",
            others=begun,
        )


def _take(project: Project, path: str) -> Take:
    """One request as the server answers it, without the socket."""
    browser = Browser(make_application(project.machine, "1", GuardRules(), {}))

    def ask() -> None:
        assert browser.get(path).status_code == 200

    def take() -> float:
        project.record(events.Monitor(session=f"dev-{project.name}-7", state="started"))
        return call_ms(ask)()

    return take


def _fill(project: Project, sessions: int, count: int) -> None:
    """A journal of so many events, and a ledger with a request of each session on some days."""
    now = time.time()

    def place(number: int, event: Event) -> Event:
        at = now - (count - number) * EVERY_S
        named = structs.replace(event, at=at, session=f"dev-{project.name}-{number % sessions + 1}")
        if isinstance(named, events.Decided):
            return structs.replace(named, written_at=round(at - 30, 3))
        return named

    told = (place(number, event) for number, event in enumerate(islice(cycle(ROUND), count)))
    append_line(project.root.journal, b"\n".join(map(json.encode, told)))
    used = [
        use(issue, now - issue * 9000, project=project.name, model=f"model-{issue % 5}")
        for issue in range(1, sessions + 1)
    ]
    spend(find_ledger(project.machine.settings), used)
