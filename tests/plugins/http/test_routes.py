"""What is said of an action that has to wait for others, and who waits for whom."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from msgspec import Struct, json
from starlette.requests import Request

from sm.config.schema import MachineSettings
from sm.plugins.http import routes, shapes
from sm.plugins.http.routes import ENDPOINTS, make_routes
from sm.sessions.machine import Machine
from sm.web.endpoint import Call, Endpoint
from tests.helpers import wait_for

MACHINE = Machine(MachineSettings())

EACH = 4
"""Slow actions at a time in one pool."""
SHORT_S = 0.5


class Done(Struct):
    """What the action below returns."""

    number: int


class Stage:
    """Requests to one slow endpoint whose action lasts until it is released."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.end = threading.Event()
        endpoint = Endpoint("GET", "/x/{session_id}", self.act, "", Done, slow=True)
        self.route = make_routes(MACHINE, [endpoint], {})[0]

    def act(self, call: Call[None]) -> Done:
        self.begun.append(call.ident)
        assert self.end.wait(20)
        return Done(len(self.begun))

    async def ask(self, session: str) -> tuple[int, str]:
        scope = {"type": "http", "method": "GET", "path_params": {"session_id": session}}
        answer = await self.route.endpoint(Request(scope | {"path": "/", "headers": []}))
        return answer.status_code, str(json.decode(answer.body).get("error", ""))

    async def fill(self) -> list[asyncio.Task[tuple[int, str]]]:
        """Have as many under way as the pool takes."""
        asked = [asyncio.create_task(self.ask("ann")) for _ in range(EACH)]
        await asyncio.to_thread(wait_for, lambda: len(self.begun) == EACH, "all of them")
        return asked


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.end.set()


def test_who_has_waited_in_vain_hears_that_nothing_was_begun(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "WAIT_S", SHORT_S)

    async def requests() -> None:
        before = await stage.fill()
        status, said = await stage.ask("ann")
        assert (status, said.partition(":")[0]) == (503, "not begun")
        stage.end.set()
        assert [status for status, _ in await asyncio.gather(*before)] == [200] * EACH

    asyncio.run(requests())
    assert stage.begun == ["ann"] * EACH


def test_the_time_of_an_action_begins_with_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "ACTION_S", SHORT_S)

    async def requests() -> None:
        before = await stage.fill()
        late = asyncio.create_task(stage.ask("ann"))
        answers = await asyncio.gather(*before)
        assert answers == [(503, "not done after 0.5 s: it may still be carried out")] * EACH
        assert not late.done()
        stage.end.set()
        assert await late == (200, "")

    asyncio.run(requests())


def test_who_waits_while_the_server_stops_hears_that_nothing_was_begun(stage: Stage) -> None:
    async def requests() -> None:
        await stage.fill()
        late = asyncio.create_task(stage.ask("ann"))
        await asyncio.sleep(0)
        late.cancel()
        assert await late == (503, "the server stops: nothing was begun")
        stage.end.set()

    asyncio.run(requests())


def test_sessions_that_begin_in_another_directory_do_not_wait() -> None:
    begin = next(one for one in ENDPOINTS if (one.method, one.path) == ("POST", "/sessions"))
    pools = {begin.pool(Call(MACHINE, "", shapes.NewSession(name))) for name in ("/a", "/b", "/a")}
    assert len(pools) == 2
