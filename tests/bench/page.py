"""The page: the board of 200 sessions beside a journal of 50,000 events, read and served."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing

from msgspec import json
from starlette.types import Message

from sm.issues.look.snapshot import look
from sm.plugins.http.app import make_application
from sm.sessions.project import Project
from sm.store import events
from sm.store.files import append_line
from sm.views.board import WatchedBoard
from sm.web.guard import GuardRules
from tests.bench.crowd import make_crowd
from tests.bench.measure import Bench, Figure, Take, call_ms, in_turns

BUDGET_MS = 60.0
EVENTS = 50_000


def figures(bench: Bench) -> Iterator[Figure]:
    """The overview, asked for after an event: the whole answer, and the board without the HTML."""
    [count] = bench.sizes((200,), quick=(200,))
    crowd = make_crowd(bench.folder / "crowd", count, awaiting=True)
    with crowd.held:
        fill_journal(crowd.project, count, 500 if bench.once else EVENTS)
        look(crowd.project)
        loop = crowd.held.enter_context(closing(asyncio.new_event_loop()))
        takes = (_serve(crowd.project, loop), _look_again(crowd.project), _look_once(crowd.project))
        served, again, once = in_turns(bench.rounds(31, 9), *takes)
    crowd_name = f"{count} sessions, {EVENTS:,} events"
    yield Figure(
        name=f"overview served, {crowd_name}",
        unit="ms",
        samples=served,
        budget=BUDGET_MS,
        beside="its board",
        others=again,
    )
    yield Figure(
        name=f"board read again, {crowd_name}",
        unit="ms",
        samples=again,
        beside="read for the first time",
        others=once,
    )


def _serve(project: Project, loop: asyncio.AbstractEventLoop) -> Take:
    """One request as the server answers it, without the socket."""
    server = make_application(project.machine, "1", GuardRules(), {})
    headers = [(b"host", b"127.0.0.1")]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "headers": headers,
    }

    async def ask() -> None:
        body = b""

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            nonlocal body
            body += message.get("body", b"")

        await server(dict(scope), receive, send)
        assert b'id="rows"' in body, body

    def take() -> float:
        _tell_one(project)
        return call_ms(lambda: loop.run_until_complete(ask()))()

    return take


def _look_again(project: Project) -> Take:
    watched = WatchedBoard(project.machine)

    def take() -> float:
        _tell_one(project)
        return call_ms(lambda: watched.read([project]))()

    return take


def _look_once(project: Project) -> Take:
    return call_ms(lambda: WatchedBoard(project.machine).read([project]))


def _tell_one(project: Project) -> None:
    """Have something happen to one of the sessions."""
    project.record(events.Monitor(session=_name(project, 7), state="started"))


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
