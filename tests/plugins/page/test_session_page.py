"""A session's page tells what git, CI and the forge have of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sm.adapters.forge.model import ReviewState
from sm.sessions.machine import Machine
from sm.store import events
from tests.e2e.conftest import stage_of as stage_of
from tests.e2e.stage import Stage, started
from tests.helpers import wait_for
from tests.plugins.page.client import Browser, make_server

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
    assert '<span class="add">+&lt;i&gt;one&lt;/i&gt;</span>' in patch
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
