"""A session that a person is in: by a real tmux, and what the status and the list make of it."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import pytest
from msgspec import structs

from sm.__main__ import run
from sm.adapters.forge.model import CheckState, PullState
from sm.adapters.tmux import Tmux
from sm.adapters.tmux_start import start_session
from sm.base.refusal import Refusal
from sm.issues.act.problem import SessionProblem, write_problem
from sm.sessions.history import StepVerb
from sm.sessions.project import Project
from sm.store.paths import Root
from sm.views.family import find_people
from sm.views.needs import list_needs
from sm.views.project import read_overview
from sm.views.session import make_rows, read_last_look
from sm.views.states import ShownState
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


def test_a_question_stays_among_what_needs_a_person_whoever_types_in_its_terminal(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmux: Tmux = project.tmux
    session = put_session(project, 4, phase="PHASE:escalate\nReason: which one?\n")
    done(session, StepVerb.NOTIFY, "escalate", write_of(project, 4))
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
    [need] = list_needs(project)
    [row] = read_overview(project, time.time()).sessions
    assert row.need == need
    assert row.waits_for == "an answer: sm reply harb 4 TEXT"
    assert run(["needs"]) == 1
    capsys.readouterr()
    assert run(["status"]) == 0
    assert f"person #4: {row.person}" in capsys.readouterr().out.splitlines()
    assert run(["status", "--json"]) == 0
    [seen] = json.loads(capsys.readouterr().out)
    assert [one["issue"] for one in seen["needs"]] == [4]
    assert seen["sessions"][0]["person"].startswith("a person is in its terminal")
    # An hour after the last key nobody is in it any more, whatever stands there.
    assert find_people(tmux, [session], time.time() + 3700) == {}


HELD = {
    Refusal.DRAFT: "the half line in its input line (its end waits)",
    Refusal.TYPING: "the person in its terminal (its end waits)",
    Refusal.ATTACHED: "the person in its terminal (its end waits)",
}


@pytest.mark.parametrize("refusal", HELD)
def test_what_waits_for_a_person_in_the_terminal_is_no_problem_and_hides_no_review(
    project: Project, refusal: Refusal
) -> None:
    session = put_session(project, 1, phase="PHASE:awaiting_review\n")
    put_snapshot(project, an_issue(1), a_pull(24, "fix/1", CheckState.SUCCESS))
    write_problem(session.dir, SessionProblem("its end waits", refusal))
    for there in ({session.name: refusal}, {}):
        [row] = make_rows(project, time.time(), [session], read_last_look(project), there)
        assert row.waits_for == f"a review of pull request #24; {HELD[refusal]}"
        assert row.problem == ""
        assert row.need
    assert row.person == ""


@pytest.mark.parametrize("phase", ["PHASE:done\n", "PHASE:awaiting_review\n", ""])
def test_a_merge_is_called_one_while_a_person_keeps_its_session(
    project: Project, phase: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session = put_session(project, 1, phase=phase)
    pull = structs.replace(a_pull(24, "fix/1", CheckState.SUCCESS), state=PullState.MERGED)
    put_snapshot(project, an_issue(1), structs.replace(pull, closed_at=time.time()))
    write_problem(session.dir, SessionProblem("its end waits", Refusal.TYPING))
    [row] = read_overview(project, time.time()).sessions
    assert (row.state, row.problem, row.need) == (ShownState.MERGED, "", None)
    assert row.waits_for.endswith("the person in its terminal (its end waits)")
    assert run(["status"]) == 0
    assert "problem #1" not in capsys.readouterr().out


def test_without_tmux_nobody_is_anywhere(project: Project) -> None:
    session = put_session(project, 1)
    assert find_people(Tmux("nobody-listens-here"), [session], time.time()) == {}
