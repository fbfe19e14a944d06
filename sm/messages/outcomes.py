"""Writes down what became of a message that was sent: once, whichever process is killed meanwhile.

The receipt of a message goes only after that is written. So a receipt without a message under way
tells that a process was killed between the two. What sm itself tells an agent has other events.
"""

from __future__ import annotations

import contextlib

from sm.base.errors import StateError
from sm.messages import queue
from sm.messages.queue import Message, MessageFolder
from sm.sessions.session import Session
from sm.store import journal
from sm.store.events import MessageEnd, MessageOutcome
from sm.store.failpoint import crash_point


def settle(session: Session, message: Message) -> None:
    """Put a message away that the agent has; the caller holds the delivery lock."""
    if message.source:
        queue.accept(session.dir, message.id)  # an agent without hooks has left no receipt
    queue.settle(session.dir, message, note=lambda: _note_delivery(session, message))


def _note_delivery(session: Session, message: Message) -> None:
    crash_point("settle:put-away")
    _note(session, message, _find_end(session))
    crash_point("settle:noted")


def catch_up(session: Session) -> None:
    """Write down what a killed process has not; the caller holds the delivery lock."""
    for ident in queue.list_receipts(session.dir):
        place = queue.find_place(session.dir, ident)
        message = (
            queue.find(session.dir, MessageFolder.DONE, ident)
            if place is MessageFolder.DONE
            else None
        )
        if message:
            _note_once(session, message, _find_end(session))
        if message or place is None:
            queue.forget_receipt(session.dir, ident)


def note_refusal(session: Session, message: Message) -> None:
    """Write down that the agent will never get a message that was queued."""
    _note_once(session, message, MessageEnd.REFUSED)


def note_return(session: Session, message: Message) -> None:
    """Write down that the agent has given a message back, which waits again."""
    _note_once(session, message, MessageEnd.GIVEN_BACK)


def _find_end(session: Session) -> MessageEnd:
    return MessageEnd.ACCEPTED if session.profile.hooks else MessageEnd.TYPED


def _note_once(session: Session, message: Message, outcome: MessageEnd) -> None:
    """Write the outcome down unless it is the last that was: a killed process may have done so."""
    told = journal.read_having(session.root.journal, message.id)
    last = next((one for one in told if isinstance(one, MessageOutcome)), None)
    if last is None or last.outcome is not outcome:
        _note(session, message, outcome)


def _note(session: Session, message: Message, outcome: MessageEnd) -> None:
    if not message.source:
        return
    event = MessageOutcome(session=session.name, id=message.id, outcome=outcome)
    with contextlib.suppress(StateError):  # on a full disk messages are delivered all the same
        journal.record(session.root.journal, event)
