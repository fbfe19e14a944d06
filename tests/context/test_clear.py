"""What is on record of a clear that something keeps from being typed."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.agent import profiles
from sm.adapters.tmux import Tmux
from sm.base.refusal import Outcome, Refusal, Status
from sm.context import progress, rotation_files
from sm.context.act import perform
from sm.context.clear import clear
from sm.context.rotation import Cause, Move, RotationAct, RotationRecord, RotationStage, begin
from sm.sessions import agent as agents
from sm.sessions import agent_process
from sm.sessions.session import Session
from sm.sessions.settings import Settings
from sm.store import journal
from sm.store.paths import Root
from sm.views.event_words import describe
from tests.messages.test_delivery import launch

PROFILE = profiles.find("odd", {"odd": {"clear": "/clear"}})
SENTENCE = "a person looks through its history (copy mode), or its pane takes no input"


@pytest.fixture
def target(root: Root, tmux: Tmux, tmp_path: Path) -> Session:
    """An agent whose terminal a person looks through."""
    target = launch(root, tmux, tmp_path, "❯\u00a0", PROFILE)
    known = agents.load(target.dir)
    assert known
    tmux.command("copy-mode", "-t", known.pane_id)
    return target


def rotation(target: Session, **changes: object) -> RotationRecord:
    """One whose document is kept already, about to be cleared."""
    record = begin("r1", Cause.COMMAND, time.time() - 60, "old", "/nowhere")
    return structs.replace(
        record, step=RotationStage.CLEAR, kept=True, clears=1, tried=1, **changes
    )


def read_story(target: Session) -> list[str]:
    return [describe(event) for event in journal.read(target.root.journal)]


def on_record(target: Session) -> dict[str, object]:
    found = json.loads(target.dir.rotation.read_text())
    assert isinstance(found, dict)
    return found


def test_a_clear_that_cannot_be_typed_says_what_is_in_the_way(target: Session) -> None:
    assert clear(target, "r1.clear1", "old") == Outcome(Status.WAITING, Refusal.MODE)
    agent_process.stop(target.tmux, target)
    assert clear(target, "r1.clear1", "old") == Outcome(Status.WAITING, Refusal.GONE)


def test_the_record_has_the_code_and_people_read_the_sentence(target: Session) -> None:
    perform(target.provide(settings=Settings()), Move(RotationAct.CLEAR, rotation(target)))
    assert on_record(target)["obstacle"] == "mode"
    assert read_story(target) == [f"not cleared yet: {SENTENCE}"]
    found = progress.find_replacement(target.dir)
    assert found
    assert found.obstacle == SENTENCE


def test_a_record_of_an_older_version_has_the_sentence_and_means_the_same(target: Session) -> None:
    record = rotation(target, obstacle=SENTENCE, since=1000.0, reported=True)
    rotation_files.write_record(target.dir, record)
    perform(target.provide(settings=Settings()), Move(RotationAct.CLEAR, record))
    assert rotation_files.read_record(target.dir) == record
    assert read_story(target) == []  # nobody is told again, and its time stands
    found = progress.find_replacement(target.dir)
    assert found
    assert found.obstacle == SENTENCE
