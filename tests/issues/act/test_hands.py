"""Nothing ends a session while a person's words stand in its composer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.adapters import procfs
from sm.adapters.forge.model import IssueState
from sm.base.refusal import Refusal
from sm.issues.act.effects import NotNowError
from sm.issues.act.problem import read_problem
from sm.issues.look.slot import read_slot
from sm.issues.start import let_go
from sm.issues.work import slots
from sm.messages.presence import find_obstacle
from sm.sessions import monitors
from sm.sessions import plan as plans
from sm.sessions.history import KILLED, Receipt, StepVerb
from sm.sessions.plan import Plan, PlannedStep
from sm.sessions.presence_rule import Disturbance
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage, started
from tests.helpers import git, wait_for


@pytest.fixture
def stage(
    tmp_path: Path, root: Root, tmux_socket: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    """An issue whose agent has had its first prompt, and no monitor: the test makes the passes."""
    assert root.path
    assert tmux_socket
    monkeypatch.setattr(monitors, "ensure", lambda _: False)
    made = make_stage(tmp_path, auto=False)
    assert started(made) == 1
    yield made
    made.end()


def draw(session: IssueSession, text: str) -> None:
    """Have the agent's terminal show a text behind what it shows already."""
    tty = session.tmux.command("display-message", "-p", "-t", f"={session.name}:", "#{pane_tty}")
    Path(tty.strip()).write_text(text)


def put_draft(session: IssueSession) -> None:
    draw(session, "Half a thou")
    wait_for(lambda: find_obstacle(session, Disturbance.END), "the draft to be seen")


def take_draft(session: IssueSession) -> None:
    draw(session, "\r\n❯\u00a0")
    wait_for(lambda: not find_obstacle(session, Disturbance.END), "the draft to be gone")


def half_done(session: IssueSession) -> Plan:
    """Put a plan on record whose next step ends the agent."""
    steps = (
        PlannedStep(StepVerb.COMMENT),
        PlannedStep(StepVerb.KILL),
        PlannedStep(StepVerb.RELEASE_CLAIM),
    )
    plan = Plan("failed:1", "failed", "1", time.time(), steps)
    plans.save(session.dir, plan)
    plans.add_receipt(session.dir, plan.receipt(0))
    return plan


def test_a_settled_issue_is_let_go_of_when_the_person_has_gone(stage: Stage) -> None:
    session, pid = stage.session(1), stage.agent_pid(1)
    forge = stage.project.forge
    forge.issues.close(1)
    put_draft(session)
    with pytest.raises(NotNowError, match="its end waits"):
        let_go(session, forge.issues.read(1))
    assert procfs.find(pid)
    assert "refs/sm/claims/1" in git(stage.repository.bare, "for-each-ref")
    take_draft(session)
    let_go(session, forge.issues.read(1))
    wait_for(lambda: procfs.find(pid) is None, "the agent's end")
    assert forge.issues.read(1).state is IssueState.CLOSED
    assert "refs/sm/claims" not in git(stage.repository.bare, "for-each-ref")


def test_the_end_that_was_planned_before_a_person_came_waits_for_them(stage: Stage) -> None:
    session, pid = stage.session(1), stage.agent_pid(1)
    half_done(session)
    put_draft(session)
    stage.sm("react", "harb", "1")
    problem = read_problem(session.dir)
    assert problem
    assert problem.refusal is Refusal.DRAFT
    assert procfs.find(pid)
    take_draft(session)
    wait_for(lambda: stage.sm("react", "harb", "1") and not procfs.find(pid), "the agent's end")


def test_the_end_that_a_person_asked_for_does_not_wait(stage: Stage) -> None:
    session, pid = stage.session(1), stage.agent_pid(1)
    half_done(session)
    plans.add_receipt(session.dir, Receipt(time.time(), KILLED, "kill"))
    put_draft(session)
    stage.sm("react", "harb", "1")
    assert not procfs.find(pid)


def test_work_that_waits_for_a_person_leaves_its_slot_to_others(stage: Stage) -> None:
    """A forgotten draft would hold it through the night."""
    session = stage.session(1)
    stage.write_phase(1, "PHASE:nonsense")
    put_draft(session)
    stage.sm("react", "harb", "1")
    problem = read_problem(session.dir)
    assert problem
    assert problem.refusal is Refusal.DRAFT
    assert read_slot(session).held_at is None

    for name in ("dev-harb-8", "dev-harb-9"):
        assert slots.take_for_new(stage.project, name)
    stage.sm("react", "harb", "1")
    assert read_slot(session).waits_at  # now there is none for it
    take_draft(session)
    stage.sm("react", "harb", "1")
    assert len(stage.told()) == 1
    slots.free_by_name(stage.project, "dev-harb-8")
    wait_for(lambda: stage.sm("react", "harb", "1") and len(stage.told()) == 2, "the message")
    assert read_slot(session).held_at


def test_an_ended_agent_leaves_its_slot_before_all_is_cleared_away(stage: Stage) -> None:
    session = stage.session(1)
    assert read_slot(session).held_at
    steps = (
        PlannedStep(StepVerb.KILL),
        PlannedStep(StepVerb.RELEASE_CLAIM),
        PlannedStep(StepVerb.FORGET),
    )
    plans.save(session.dir, Plan("failed:1", "failed", "1", time.time(), steps))
    git(stage.repository.bare, "config", "receive.denyDeletes", "true")  # the claim stays
    hook = stage.repository.bare / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    stage.sm("react", "harb", "1")
    assert session.dir.identity.exists()
    assert read_slot(session).held_at is None
