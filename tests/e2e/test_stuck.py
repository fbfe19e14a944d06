"""A message that cannot be typed for now: it waits, but not at any price."""

from __future__ import annotations

import msgspec

from sm.issues.act.effects import make_effect_id
from sm.issues.act.pending import STUCK_S
from sm.messages import queue
from sm.sessions.plan import Plan, read_pending
from sm.store import lock
from sm.store.files import write_json
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage
from tests.helpers import wait_for


def with_stuck_message(stage: Stage) -> int:
    """An issue whose agent is owed a message while a person scrolls through its terminal."""
    issue = stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    stage.project.tmux.command("copy-mode", "-t", f"=dev-harb-{issue}:")
    stage.write_phase(issue, "PHASE:nonsense")
    wait_for(stage.session(issue).dir.problem.exists, "the message to be stuck")
    assert "copy mode" in stage.sm("status", "--json").stdout
    return issue


def leave_copy_mode(stage: Stage, issue: int) -> None:
    stage.project.tmux.command("send-keys", "-t", f"=dev-harb-{issue}:", "-X", "cancel")


def test_message_is_typed_once_when_the_person_has_left_copy_mode(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = with_stuck_message(stage)
    assert len(stage.told()) == 1
    leave_copy_mode(stage, issue)
    wait_for(lambda: len(stage.told()) == 2, "the message")
    wait_for(lambda: read_pending(stage.session(issue).dir) is None, "the end of the plan")
    assert len(stage.told()) == 2


def test_closing_the_issue_ends_the_session_although_a_message_is_stuck(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issue = with_stuck_message(stage)
    stage.project.forge.issues.close(issue)
    wait_for(lambda: not stage.sessions(), "the session's end")
    assert len(stage.told()) == 1


def test_person_is_told_of_a_message_that_stays_stuck_and_it_is_typed_in_the_end(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issue = with_stuck_message(stage)
    directory = stage.session(issue).dir

    def long_ago() -> Plan | None:
        with lock.hold(directory.lock):
            if plan := read_pending(directory):
                # A message's id comes from its plan's time: the one that waits is of no plan then.
                queue.withdraw(directory, make_effect_id(plan, 0))
                old = msgspec.structs.replace(plan, created_at=1.0 - STUCK_S)
                write_json(directory.plan, old)
            return plan

    wait_for(long_ago, "the plan")
    comments = wait_for(lambda: stage.project.forge.issues.read(issue).comments, "the question")
    assert "copy mode" in comments[0].body
    leave_copy_mode(stage, issue)
    wait_for(lambda: len(stage.told()) == 2, "the message")
    assert "no phase of the protocol" in stage.told()[1]
    assert len(stage.project.forge.issues.read(issue).comments) == 1


def test_agent_that_a_person_restarts_gets_no_message_of_before_twice(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issue = with_stuck_message(stage)
    stage.sm("recover", "harb", str(issue))
    wait_for(lambda: messages(stage), "the message")
    directory = stage.session(issue).dir
    wait_for(lambda: read_pending(directory) is None and queue.is_empty(directory), "the end of it")
    stage.sm("react", "harb", str(issue))
    assert len(messages(stage)) == 1


def messages(stage: Stage) -> list[str]:
    """Those that name the line; the first prompt of the next agent quotes it as well."""
    return [text for text in stage.told() if text.startswith("[sm] The phase file holds a line")]
