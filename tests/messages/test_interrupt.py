"""When an urgent message may interrupt."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.tmux import Tmux
from sm.messages import queue
from sm.messages.draft import TypedMessage
from sm.messages.interrupt import is_protected
from sm.messages.queue import Message, MessageFolder, Mode
from sm.sessions import registry
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession, Session
from sm.store.files import write_json
from sm.store.paths import Root


@pytest.fixture
def target(root: Root, tmux: Tmux, tmp_path: Path) -> Session:
    """An agent that has just been given an urgent message."""
    session = registry.create(
        root,
        AdHocSession(
            AdHocRecord(
                name="s-urgent",
                provider="claude",
                cwd=tmp_path,
                config=None,
                state_root=root.path,
                created_at=time.time(),
                command="",
            )
        ),
    )
    target = session.provide(tmux=tmux, profile=CLAUDE)
    tell(target, Message(id=queue.make_id(), text="Now!", mode=Mode.URGENT))
    return target


def tell(target: Session, message: Message) -> None:
    """As if it had been typed, and confirmed."""
    directory = target.dir
    queue.put(directory, message)
    queue.move(directory, message, MessageFolder.WAITING, MessageFolder.HANDED)
    queue.accept(directory, message.id)
    queue.settle(directory, message)
    write_json(directory.typed, TypedMessage(message.id, 1, message.text, time.time()))


def happens(target: Session, event: str, after_s: float) -> None:
    with target.dir.events.open("a") as events:
        events.write(f"{time.time() + after_s:.6f} {event} c1 -\n")


def test_a_compaction_before_the_answer_to_an_urgent_message_is_no_answer(target: Session) -> None:
    """Another urgent one would take it back, and come before it."""
    happens(target, "UserPromptSubmit", 0.1)
    happens(target, "PreCompact", 0.6)
    happens(target, "SessionStart", 1.2)
    happens(target, "PostCompact", 1.3)
    assert is_protected(target)


@pytest.mark.parametrize("event", ["PostToolUse", "Stop", "StopFailure"])
def test_an_urgent_message_that_was_answered_may_be_followed(target: Session, event: str) -> None:
    happens(target, event, 0.1)
    assert not is_protected(target)


def test_what_opens_a_context_is_answered_before_an_urgent_message_interrupts(
    target: Session,
) -> None:
    tell(target, Message(id=queue.make_id(), text="Read notes.md and go on.", opens=True))
    assert is_protected(target)
    happens(target, "PostToolUse", 0.1)
    assert not is_protected(target)


def test_any_other_message_may_be_interrupted(target: Session) -> None:
    tell(target, Message(id=queue.make_id(), text="By the way."))
    assert not is_protected(target)
