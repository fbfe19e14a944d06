"""What became of a message is written down once for each change, whoever is killed meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.agent.claude import CLAUDE
from sm.messages import delivery, outcomes, queue
from sm.messages.queue import PERSON, Message, MessageFolder
from sm.sessions import registry
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession, Session
from sm.store import journal
from sm.store.events import MessageEnd, MessageOutcome
from sm.store.paths import Root

ONE = Message(id="a" * 8, text="Hello.", source=PERSON)
ACCEPTED, RETURNED = MessageEnd.ACCEPTED, MessageEnd.GIVEN_BACK


@pytest.fixture
def session(root: Root, tmp_path: Path) -> Session:
    record = AdHocRecord(
        name="s-00000001",
        provider="claude",
        cwd=tmp_path,
        config=None,
        state_root=root.path,
        created_at=time.time(),
        command="",
    )
    return registry.create(root, AdHocSession(record)).provide(profile=CLAUDE)


def hand_over(session: Session, message: Message = ONE) -> None:
    queue.put(session.dir, message)
    queue.move(session.dir, message, MessageFolder.WAITING, MessageFolder.HANDED)


def list_outcomes(session: Session) -> list[MessageEnd]:
    every = journal.read(session.root.journal)
    return [one.outcome for one in every if isinstance(one, MessageOutcome)]


def test_each_change_is_told_and_none_twice(session: Session) -> None:
    hand_over(session)
    outcomes.settle(session, ONE)
    outcomes.note_return(session, ONE)
    outcomes.note_return(session, ONE)  # who did so first was killed
    queue.move(session.dir, ONE, MessageFolder.DONE, MessageFolder.HANDED)
    outcomes.settle(session, ONE)
    assert list_outcomes(session) == [ACCEPTED, RETURNED, ACCEPTED]
    outcomes.note_return(session, ONE)
    outcomes.note_refusal(session, ONE)
    assert list_outcomes(session)[3:] == [RETURNED, MessageEnd.REFUSED]
    assert delivery.is_at_rest(session)


def test_what_a_killed_process_has_not_told_is_told_and_old_receipts_go(session: Session) -> None:
    hand_over(session)
    queue.accept(session.dir, ONE.id)
    queue.move(session.dir, ONE, MessageFolder.HANDED, MessageFolder.DONE)
    queue.accept(session.dir, "b" * 8)  # of a message that nobody knows any more
    under_way = structs.replace(ONE, id="c" * 8)
    hand_over(session, under_way)
    queue.accept(session.dir, under_way.id)
    outcomes.catch_up(session)
    outcomes.catch_up(session)
    assert list_outcomes(session) == [ACCEPTED]
    assert queue.list_receipts(session.dir) == [under_way.id]


def test_what_sm_says_itself_is_not_told(session: Session) -> None:
    ours = structs.replace(ONE, source="")
    hand_over(session, ours)
    outcomes.settle(session, ours)
    outcomes.note_return(session, ours)
    assert list_outcomes(session) == []
