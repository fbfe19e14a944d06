"""What becomes of an issue's own messages, and of its protocol, when a context is replaced."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import msgspec
import pytest

from sm.history import fold
from sm.session import queue
from sm.session.delivery import Reason
from sm.session.plan import Plan, pending, receipts
from sm.session.queue import Place
from sm.store import journal, lock
from sm.store.files import ensure_private_dir, write_json
from sm.workflow.effects import effect_id
from sm.workflow.reactor import STUCK_S
from tests.company import SM, profiles
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage
from tests.helpers import wait_for


@pytest.fixture
def stage(stage_of: MakeStage, tmp_path: Path) -> Stage:
    """An issue that a scripted agent with hooks works on; its profile has no system prompt."""
    env = {name: os.environ[name] for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")}
    agents = {"profile": "peer", "command": "", "env": env}
    made = stage_of(settings={"profiles": profiles(tmp_path), "agent": agents})
    made.file_issue()
    made.poll()
    wait_for(lambda: told(made), "the first prompt")
    return made


def told(stage: Stage) -> list[str]:
    """What the agents of the issue were told."""
    path = stage.folder / "peers.jsonl"
    whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
    entries = [json.loads(line) for line in whole.split("\n") if line]
    return [one["text"] for one in entries if one["kind"] == "message"]


def hand_off(stage: Stage, *more: str) -> Path:
    """Have the agent call `sm handoff` in a turn with these further orders."""
    path = stage.folder / "notes.md"
    path.write_text("# What is to be done next\n")
    stage.sm("send", "harb#1", "\n".join([f"run: {SM} handoff {path}", *more]))
    wait_for(stage.session(1).dir.hold.exists, "the handoff to be scheduled")
    return path


def test_no_person_is_asked_about_a_message_that_waits_for_the_new_context(stage: Stage) -> None:
    """The rotation tells of what is in its own way, and the message is heard behind it."""
    directory, go = stage.session(1).dir, stage.folder / "go"
    path = hand_off(stage, f"hold: {go}")
    stage.write_phase(1, "PHASE:nonsense")

    def long_ago() -> Plan | None:
        with lock.hold(directory.lock):
            plan = pending(directory)
            if plan and directory.problem.exists():
                # A message's id comes from its plan's time: the one that waits is of no plan then.
                queue.withdraw(directory, effect_id(plan, 0))
                write_json(directory.plan, msgspec.structs.replace(plan, created_at=1.0 - STUCK_S))
                return plan
            return None

    wait_for(long_ago, "the message to wait")
    stage.sm("react", "harb", "1")
    assert Reason.HOLD in directory.problem.read_text()
    assert fold(receipts(directory)).troubles == ()
    go.touch()
    wait_for(lambda: any("no sentinel" in text for text in told(stage)), "the message")
    begun = next(n for n, text in enumerate(told(stage)) if text.startswith(f"Read {path}"))
    assert not [text for text in told(stage)[:begun] if "no sentinel" in text]
    assert not stage.ctx.forge.issue(1).comments


def test_what_keeps_messages_from_an_agent_is_told_in_the_story_once(stage: Stage) -> None:
    session = stage.session(1)
    name = f"{time.time_ns():019d}-{queue.new_id()}.sequential"
    link = session.dir.queue / Place.WAITING / name
    ensure_private_dir(link.parent)
    link.symlink_to("/nowhere")
    for _ in range(3):
        stage.sm("react", "harb", "1")
    told = [one.detail for one in journal.read(stage.ctx.root.journal) if one.event == "problem"]
    assert [detail for detail in told if str(link) in detail] == told[:1]
    assert told
    assert str(link) in stage.sm("trace", "harb", "1").stdout


def test_an_agent_is_told_the_protocol_again_where_its_system_prompt_does_not_hold_it(
    stage: Stage,
) -> None:
    path = hand_off(stage)
    phase_file = str(stage.ctx.root.phase("harb", 1))

    def resumed() -> str:
        return next((text for text in told(stage) if text.startswith(f"Read {path}")), "")

    assert phase_file in wait_for(resumed, "the new context")
