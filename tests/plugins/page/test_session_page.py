"""A session's page tells what git, CI and the forge have of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import NoReturn

import httpx2
import pytest

from sm.adapters.forge.model import ReviewState
from sm.base.errors import UsageError
from sm.plugins.page.app import READERS
from sm.plugins.page.session_page import PARTS
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.store import events
from tests.e2e.conftest import stage_of as stage_of
from tests.e2e.stage import Stage, started
from tests.helpers import HANG_S, put_session, wait_for
from tests.plugins.page.client import ORIGIN, Browser, make_server

pytestmark = pytest.mark.long_lived

LOG = "for n in $(seq 300); do echo line $n; done; echo '<b>boom</b>'; exit 1"


def test_it_has_the_changes_the_failing_log_and_the_reviews(
    stage_of: Callable[..., Stage],
) -> None:
    stage = stage_of(settings={"ci": {"command": LOG, "poll": "1s"}})
    issue = started(stage)
    project = stage.project
    browser = Browser(make_server(Machine(project.config, project.config.source)))
    page = f"/page/session/dev-harb-{issue}"
    assert "Nothing is committed" in browser.get(f"{page}/diff").text
    assert "there is no pull request yet" in browser.get(f"{page}/pull").text
    stage.push_work(issue, "cart.txt", "<i>one</i>\n")
    stage.write_phase(issue, "PHASE:awaiting_ci")
    wait_for(lambda: "CI: failure" in browser.get(f"{page}/pull").text, "the failure of CI")
    [pull] = project.forge.pulls.find()[0]
    project.forge.pulls.review(
        pull.number, ReviewState.CHANGES_REQUESTED, "Not <u>yet</u>.", author="rita"
    )
    judged = browser.get(f"{page}/pull").text
    assert "&lt;b&gt;boom&lt;/b&gt;" in judged
    assert "line 300" in judged
    assert "line 20\n" not in judged
    assert "Not &lt;u&gt;yet&lt;/u&gt;." in judged
    patch = browser.get(f"{page}/diff").text
    assert "<code>&lt;i&gt;one&lt;/i&gt;</code>" in patch
    assert "cart.txt" in patch
    whole = browser.get(page).text
    assert "started the agent" in whole
    assert "CI and reviews" in whole


def test_a_session_that_is_gone_says_so(stage_of: Callable[..., Stage]) -> None:
    stage = stage_of()
    project = stage.project
    browser = Browser(make_server(Machine(project.config, project.config.source)))
    for ident in ("dev-harb-9", "..", "%2e%2e%2fx", "a*b"):
        answer = browser.get(f"/page/session/{ident}")
        assert answer.status_code == 404, ident
    assert browser.get("/page/session/dev-harb-9/nothing").status_code == 404
    project.record(events.Started(session="dev-harb-9", title="Mend it"))
    assert "started the agent: Mend it" in browser.get("/page/session/dev-harb-9").text


def test_a_forge_that_does_not_answer_holds_up_its_own_part_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_session(project, 3)
    asked, answers = threading.Semaphore(0), threading.Event()

    def wait(*_: object) -> NoReturn:
        asked.release()
        assert answers.wait(HANG_S)
        raise UsageError("the forge does not answer")

    monkeypatch.setitem(PARTS, "pull", wait)
    client = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=make_server(project.machine)), base_url=ORIGIN
    )
    page = "/page/session/dev-harb-3"

    async def ask() -> tuple[str, list[str]]:
        async with client, asyncio.timeout(HANG_S), asyncio.TaskGroup() as tasks:
            parts = [tasks.create_task(client.get(f"{page}/pull")) for _ in range(2 * READERS)]
            for _ in range(READERS):
                await asyncio.to_thread(asked.acquire)
            try:
                async with asyncio.timeout(HANG_S / 8):
                    whole = await client.get(page)
            finally:
                answers.set()
            return whole.text, [(await part).text for part in parts]

    whole, parts = asyncio.run(ask())
    assert 'data-session="dev-harb-3"' in whole
    assert all("the forge does not answer" in part for part in parts)
