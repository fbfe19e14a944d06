"""The context of an issue's agent that is replaced, and what becomes of messages and protocol."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import msgspec
import pytest

from sm.base.refusal import Refusal
from sm.issues.act.effects import make_effect_id
from sm.issues.act.pending import STUCK_S
from sm.issues.act.problem import read_problem
from sm.messages import queue
from sm.messages.queue import MessageFolder
from sm.sessions.history import fold
from sm.sessions.plan import Plan, read_pending, read_receipts
from sm.store import journal, lock
from sm.store.files import ensure_private_dir, write_json
from sm.views.event_words import describe, name_event
from tests.company import SM, peers_log, profiles
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage
from tests.helpers import git, wait_for


@pytest.fixture
def stage(stage_of: MakeStage, tmp_path: Path) -> Stage:
    """An issue that a scripted agent with hooks works on; its profile has no system prompt."""
    env = {name: os.environ[name] for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")}
    agents = {"profile": "peer", "command": "", "env": env}
    made = stage_of(settings={"profiles": profiles(tmp_path), "agent": agents})
    made.file_issue()
    made.poll()
    wait_for(lambda: list_told(made), "the first prompt")
    return made


def list_told(stage: Stage) -> list[str]:
    """What the agents of the issue were told."""
    return [one["text"] for one in peers_log(stage.folder) if one["kind"] == "message"]


def story(stage: Stage) -> str:
    """All details of the journal."""
    return "\n".join(describe(event) for event in journal.read(stage.project.root.journal))


def hand_off(stage: Stage, *more: str) -> Path:
    """Have the agent call `sm handoff` in a turn with these further orders."""
    path = stage.folder / "notes.md"
    path.write_text("# What is to be done next\n")
    stage.sm("send", "harb#1", "\n".join([f"run: {SM} handoff {path}", *more]))
    # On a slow machine the rotation is over before `sm send` has ended.
    wait_for(lambda: f"handoff with {path}" in story(stage), "the handoff to be scheduled")
    return path


def is_rotated(stage: Stage) -> bool:
    directory = stage.session(1).dir
    files = (directory.hold, directory.handoff, directory.rotation)
    return "Read " in "\n".join(list_told(stage)) and not any(file.exists() for file in files)


def test_the_context_of_an_issue_s_session_is_replaced_and_trace_tells_of_it(stage: Stage) -> None:
    stage.sm("send", "harb#1", "gauge: 88")
    wait_for(lambda: is_rotated(stage), "the rotation")
    story = stage.sm("trace", "harb", "1").stdout
    assert re.search(r"cycle begins at 88%.*clear.*resume.*finished", story, re.DOTALL), story
    folder = stage.session(1).worktree / ".sm" / "handoffs"
    assert [path.name for path in folder.glob("*.md")]
    assert not git(stage.session(1).worktree, "status", "--porcelain")


def test_an_agent_that_dies_as_it_is_cleared_is_begun_anew_with_its_document(stage: Stage) -> None:
    stage.sm("send", "harb#1", "mortal:\ngauge: 88")
    wait_for(lambda: is_rotated(stage), "the rotation", 60)
    prompts = [text.partition("\n")[0] for text in list_told(stage)]
    assert sum(prompt.startswith("You take over") for prompt in prompts) == 1
    assert sum(prompt.startswith("Read handoff from") for prompt in prompts) == 1


def test_no_person_is_asked_about_a_message_that_waits_for_the_new_context(stage: Stage) -> None:
    """The rotation tells of what is in its own way, and the message is heard behind it."""
    directory, go = stage.session(1).dir, stage.folder / "go"
    path = hand_off(stage, f"hold: {go}")
    stage.write_phase(1, "PHASE:nonsense")

    def long_ago() -> Plan | None:
        with lock.hold(directory.lock):
            plan = read_pending(directory)
            if plan and directory.problem.exists():
                # A message's id comes from its plan's time: the one that waits is of no plan then.
                queue.withdraw(directory, make_effect_id(plan, 0))
                write_json(directory.plan, msgspec.structs.replace(plan, created_at=1.0 - STUCK_S))
                return plan
            return None

    wait_for(long_ago, "the message to wait")
    stage.sm("react", "harb", "1")
    problem = read_problem(directory)
    assert problem
    assert problem.refusal is Refusal.HOLD
    assert fold(read_receipts(directory)).troubles == ()
    go.touch()
    unknown = "no phase of the protocol"
    wait_for(lambda: [text for text in list_told(stage) if unknown in text], "the message")
    begun = next(n for n, text in enumerate(list_told(stage)) if text.startswith(f"Read {path}"))
    assert not [text for text in list_told(stage)[:begun] if unknown in text]
    assert not stage.project.forge.issues.read(1).comments


def test_what_keeps_messages_from_an_agent_is_told_in_the_story_once(stage: Stage) -> None:
    session = stage.session(1)
    name = f"{time.time_ns():019d}-{queue.make_id()}.sequential"
    link = session.dir.queue / MessageFolder.WAITING / name
    ensure_private_dir(link.parent)
    link.symlink_to("/nowhere")
    for _ in range(3):
        stage.sm("react", "harb", "1")
    events = journal.read(stage.project.root.journal)
    problems = [describe(event) for event in events if name_event(event) == "problem"]
    assert [detail for detail in problems if str(link) in detail] == problems[:1]
    assert problems
    assert str(link) in stage.sm("trace", "harb", "1").stdout


def test_an_agent_is_told_the_protocol_again_where_its_system_prompt_does_not_hold_it(
    stage: Stage,
) -> None:
    path = hand_off(stage)
    phase_file = str(stage.project.root.phase("harb", 1))

    def resumed() -> str:
        return next((text for text in list_told(stage) if text.startswith(f"Read {path}")), "")

    assert phase_file in wait_for(resumed, "the new context")
