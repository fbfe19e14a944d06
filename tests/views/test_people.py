"""A session that a person is in: by a real tmux, and what the status and the list make of it."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.adapters.forge.model import CheckState
from sm.adapters.tmux import Tmux
from sm.adapters.tmux_start import start_session
from sm.base.refusal import Refusal
from sm.issues.act.problem import Problem, write_problem
from sm.sessions.history import Verb
from sm.sessions.project import Project
from sm.store.paths import Root
from sm.views.needs import list_needs
from sm.views.people import find_people
from sm.views.project import read_overview
from sm.views.session import make_rows, read_last_look
from tests.helpers import (
    a_pull,
    an_issue,
    make_repository,
    open_project,
    put_session,
    put_snapshot,
    sm_yaml,
    wait_for,
)
from tests.views.test_session import done, write_of


@pytest.fixture
def project(
    tmp_path: Path, root: Root, tmux_socket: str, monkeypatch: pytest.MonkeyPatch
) -> Project:
    assert root.path == tmp_path / "state"
    make_repository(tmp_path)
    path = sm_yaml(tmp_path, trusted=["ada"], tmux_socket=tmux_socket)
    monkeypatch.setenv("SM_CONFIG", str(path))
    return open_project(path)


def test_a_question_in_whose_terminal_a_person_types_needs_nobody_else(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmux: Tmux = project.tmux
    session = put_session(project, 4, phase="PHASE:escalate\nReason: which one?\n")
    done(session, Verb.NOTIFY, "escalate", write_of(project, 4))
    put_snapshot(project, an_issue(4))
    start_session(tmux, session.name, tmp_path, ["cat"])
    assert [need.issue for need in list_needs(project)] == [4]

    command = f"unset TMUX; exec {shlex.join(tmux.attach_argv(session.name))}"
    start_session(tmux, "person", tmp_path, ["sh", "-c", command])
    wait_for(lambda: tmux.command("list-clients"), "the person")
    assert [need.issue for need in list_needs(project)] == [4]  # who only looks is no help

    def is_in_it() -> bool:
        tmux.command("send-keys", "-t", "=person:", "x")
        return find_people(tmux, [session], time.time()) == {session.name: Refusal.TYPING}

    wait_for(is_in_it, "the keys to be known", every_s=0.3)
    assert list_needs(project) == []
    [row] = read_overview(project, time.time()).sessions
    assert row.need is None
    assert row.waits_for == (
        "a person in its terminal, who has typed within ten minutes; then an answer"
    )
    assert run(["needs"]) == 0
    capsys.readouterr()
    assert run(["status"]) == 0
    assert f"person #4: {row.waits_for}" in capsys.readouterr().out.splitlines()
    assert run(["status", "--json"]) == 0
    [seen] = json.loads(capsys.readouterr().out)
    assert seen["needs"] == []
    assert seen["sessions"][0]["person"].startswith("a person in its terminal")
    # An hour after the last key it is everybody's matter again, whatever stands there.
    assert find_people(tmux, [session], time.time() + 3700) == {}


def test_what_is_due_is_said_of_the_person_who_is_in_the_way(project: Project) -> None:
    session = put_session(project, 1, phase="PHASE:awaiting_review\n")
    put_snapshot(project, an_issue(1), a_pull(24, "fix/1", CheckState.SUCCESS))
    write_problem(session.dir, Problem("its end waits", Refusal.DRAFT))
    there = {session.name: Refusal.DRAFT}
    [row] = make_rows(project, time.time(), [session], read_last_look(project), there)
    assert row.waits_for == "a person in its terminal, who has half a line typed; its end waits"
    assert row.need is None
    [row] = make_rows(project, time.time(), [session], read_last_look(project))
    assert row.need
    assert row.person == ""


def test_without_tmux_nobody_is_anywhere(project: Project) -> None:
    session = put_session(project, 1)
    assert find_people(Tmux("nobody-listens-here"), [session], time.time()) == {}
