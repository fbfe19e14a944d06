"""What a person does on the page is done, by the functions behind the verbs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.adapters.forge.model import CheckState, PullState, ReviewState
from sm.sessions import pause, registry
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.store import events, journal
from tests.company import peers_log, profiles
from tests.e2e.conftest import stage_of as stage_of
from tests.e2e.stage import Stage, started
from tests.helpers import put_session, wait_for
from tests.plugins.cost.conftest import shop as shop
from tests.plugins.cost.shop import begin_ad_hoc, open_project
from tests.plugins.page.client import Browser, make_server


def open_browser(project: Project) -> Browser:
    browser = Browser(make_server(Machine(project.config, project.config.source)))
    browser.log_in()
    return browser


@pytest.mark.long_lived
def test_a_pull_request_is_turned_back_approved_and_merged(
    stage_of: Callable[..., Stage],
) -> None:
    stage = stage_of()
    issue = started(stage)
    head = stage.push_work(issue)
    stage.write_phase(issue, "PHASE:awaiting_ci")
    project, pulls = stage.project, stage.project.forge.pulls
    branch = project.settings.branch(issue)
    pull = wait_for(lambda: pulls.find_newest(branch), "a pull request")
    assert pull
    number = pull.number
    checks = project.forge.checks
    wait_for(lambda: checks.read(head).state is CheckState.SUCCESS, "the success of CI")
    browser = open_browser(project)
    about = {"project": "harb", "number": str(number), "head": head}
    assert browser.act(act="request-changes", **about).status_code == 409, "without a word on it"
    said = browser.act(act="request-changes", text="Too <b>long</b>.", **about)
    assert f"changes-requested #{number} at {head[:12]}" in said.text, said.text
    assert pulls.read(number).reviews[-1].body == "Too <b>long</b>."
    said = browser.act(act="approve", **about)
    assert f"approved #{number} at {head[:12]}" in said.text
    assert pulls.read(number).reviews[-1].state is ReviewState.APPROVED
    assert browser.act(act="merge", **about | {"head": "0" * 40}).status_code == 409
    assert pulls.read(number).state is PullState.OPEN
    said = browser.act(act="merge", **about)
    assert f"merged #{number} at {head[:12]} as " in said.text
    assert pulls.read(number).state is PullState.MERGED


@pytest.mark.long_lived
def test_a_session_is_steered(stage_of: Callable[..., Stage]) -> None:
    stage = stage_of()
    issue = started(stage)
    session = stage.session(issue)
    browser = open_browser(stage.project)
    about = {"session": session.name, "project": "harb", "number": str(issue)}
    page = browser.get(f"/page/session/{session.name}").text
    for act, says, comes in (
        ("pause", "finishes its turn, then rests", "paused"),
        ("resume", "", "goes on"),
        ("send", "gets it when its turn ends", f"harb#{issue}"),
        ("cycle", "writes a handoff document", "has no command that clears the context"),
        ("recover", "starts another in the same worktree", "recovering dev-harb-"),
        ("kill", f"labels issue #{issue} blocked", ""),
    ):
        assert says in page
        answer = browser.act(act=act, text="Hello.", **about)
        assert answer.status_code == (409 if act == "cycle" else 200), answer.text
        assert comes in answer.text
    wait_for(lambda: not stage.sessions(), "the end of the session")
    assert "blocked" in stage.project.forge.issues.read(issue).labels


@pytest.mark.long_lived
def test_a_context_is_replaced(stage_of: Callable[..., Stage], tmp_path: Path) -> None:
    env = {name: os.environ[name] for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")}
    agents = {"profile": "peer", "command": "", "env": env}
    stage = stage_of(settings={"profiles": profiles(tmp_path), "agent": agents})
    issue = stage.file_issue()
    stage.poll()
    session = stage.session(issue)
    wait_for(lambda: peers_log(tmp_path), "the first prompt")
    answer = open_browser(stage.project).act(act="cycle", session=session.name)
    assert f"harb#{issue} is asked for a handoff document in" in answer.text
    wait_for(lambda: "finished" in stage.sm("trace", "harb", str(issue)).stdout, "the rotation")
    told = [one["text"] for one in peers_log(tmp_path) if one["kind"] == "message"]
    assert any(text.startswith("Read ") for text in told)


@pytest.mark.long_lived
def test_the_page_outlives_tmux(stage_of: Callable[..., Stage]) -> None:
    stage = stage_of(settings={"recovery": {"pause": "1h"}})
    issue = started(stage)
    browser = open_browser(stage.project)
    path = f"/page/session/dev-harb-{issue}"
    assert "chip working" in browser.get(path).text
    stage.project.tmux.command("kill-server")
    wait_for(lambda: "chip working" not in browser.get(path).text, "another state")
    assert browser.get("/").status_code == 200
    answer = browser.act(act="send", session=f"dev-harb-{issue}", text="Hello.")
    assert answer.status_code in (200, 409), answer.text
    assert "accepted" not in answer.text


def test_a_session_without_an_issue_is_steered_too(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project(shop, "{}")
    monkeypatch.setenv("SM_CONFIG", str(project.config.source))
    ann = begin_ad_hoc(project, "s-00000001")
    browser = open_browser(project)
    page = browser.get(f"/page/session/{ann.name}").text
    offered = re.findall(r'name="act" value="([^"]+)"', page)
    assert list(dict.fromkeys(offered)) == ["send", "pause", "cycle", "kill"]
    assert "paused" in browser.act(act="pause", session=ann.name).text
    assert pause.find(ann.root, ann.project_name, ann.name)
    assert "Resume …" in browser.get(f"/page/session/{ann.name}").text
    assert browser.act(act="resume", session=ann.name).status_code == 200
    assert pause.find(ann.root, ann.project_name, ann.name) is None
    assert browser.act(act="kill", session=ann.name).status_code == 200
    assert registry.find(ann.root, ann.name) is None


def test_each_act_can_be_carried_out_and_the_grave_ones_are_asked_twice(
    project: Project, browser: Browser
) -> None:
    put_session(project, 3)
    browser.log_in()
    page = browser.get("/page/session/dev-harb-3").text
    for label in ("New context", "Restart", "End session"):
        found = page.index(f"<summary>{label} …</summary>")
        assert found < page.index(f">{label}</button>")


def test_a_clock_that_was_set_back_hides_nothing(
    project: Project, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_session(project, 3)
    position = journal.find_size(project.root.journal)
    project.record(events.Monitor(session="dev-harb-3", state="started"))
    assert "monitor started" in browser.get(f"/page/changes?since={position}").text
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    position = journal.find_size(project.root.journal)
    project.record(events.Monitor(session="dev-harb-3", state="stopped"))
    found = browser.get(f"/page/changes?since={position}").text
    assert "monitor stopped" in found
    for page in (found, browser.get("/").text, browser.get("/page/session/dev-harb-3").text):
        assert not re.search(r">-\d", page)
