"""The page: the board of 200 sessions beside a journal of 50,000 events, read and served."""

from __future__ import annotations

import time
from collections.abc import Iterator

from msgspec import json

from sm.sessions.project import Project
from sm.store import events
from sm.store.files import append_line
from sm.views.board import read_board
from tests.bench.crowd import make_crowd
from tests.bench.measure import Bench, Figure, call_ms, in_turns

BUDGET_MS = 60.0
EVENTS = 50_000


def figures(bench: Bench) -> Iterator[Figure]:
    """The board alone."""
    [count] = bench.sizes((200,), quick=(200,))
    crowd = make_crowd(bench.folder / "crowd", count, awaiting=True)
    with crowd.held:
        fill_journal(crowd.project, count, 500 if bench.once else EVENTS)
        project = crowd.project
        take = call_ms(lambda: read_board(project.machine, [project]))
        [samples] = in_turns(bench.rounds(21, 7), take)
    yield Figure(name=f"board of {count} sessions", unit="ms", samples=samples, budget=BUDGET_MS)


def fill_journal(project: Project, sessions: int, count: int) -> None:
    """Have the journal tell so many events, the same number of each session."""
    now = time.time()
    told = (
        events.Monitor(at=now - count + number, session=_name(project, number % sessions))
        for number in range(count)
    )
    append_line(project.root.journal, b"\n".join(map(json.encode, told)))


def _name(project: Project, number: int) -> str:
    return f"dev-{project.name}-{number + 1}"
