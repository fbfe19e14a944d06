"""Notification of other sessions: what became of one, and the end of a turn that they wait for.

A notification is a message like any other, with an id made of what it tells: telling the same
again, after a crash for instance, finds it known already.

A subscription to the end of a turn is a file for each message, gone once it is told. A message
belongs to the turn that runs at its receipt, so a turn that ended earlier says nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from msgspec import Struct

from sm.base.act_guard import before_act
from sm.base.errors import SmError, StateError, UsageError
from sm.messages import queue
from sm.messages.ids import derive_id
from sm.messages.peer_texts import word_notice
from sm.messages.queue import Message
from sm.sessions import registry
from sm.sessions.history import StepVerb
from sm.sessions.plan import Plan
from sm.sessions.session import Session
from sm.store import events, journal
from sm.store.files import create_exclusive, discard, ensure_private_dir, list_names, read_harmless
from sm.store.paths import NAME, Root, SessionDir


def tell_parent(session: Session, what: str, key: str) -> bool:
    """Tell the session that began this one; `key` stands for the event, once and for all."""
    notice = word_notice(session.address, what)
    return tell(session.root, session.record.parent, make_event_id(session, key), notice)


def tell_all(session: Session, what: str, key: str) -> bool:
    """Tell the parent, and everybody who still waits for the end of a turn.

    Returns whether all were told.
    """
    are_told = tell_parent(session, what, key)
    ident, notice = make_event_id(session, key), word_notice(session.address, what)
    for waiter in list_waiters(session.dir):
        if tell(session.root, waiter.session, ident, notice):
            unsubscribe(session.dir, waiter.ident)
        else:
            are_told = False
    return are_told


def tell_of_step(session: Session, plan: Plan, number: int) -> bool:
    """Tell of a step of the matrix that others wait for; return whether all were told."""
    what = _STEPS.get(plan.steps[number].verb)
    key = f"step:{plan.key}#{number}@{plan.created_at}"
    return what is None or tell_all(session, f"{what} ({plan.row})", key)


_STEPS = {
    StepVerb.NOTIFY: "waits for a person",
    StepVerb.RECOVER: "has lost its agent, and gets another one",
    StepVerb.FORGET: "has ended",
}


def make_event_id(session: Session, key: str) -> str:
    """Make the id of the words about an event, the same in each process that finds the event."""
    event = f"{session.name}@{session.record.created_at}:{key}"
    return derive_id(event)


def tell(root: Root, name: str, ident: str, text: str) -> bool:
    """Queue a notification for session `name`, once; False where it could not be queued.

    There is nothing to queue where the session has ended, or is unknown. A full disk, or damage to
    the receiver's files, must not hold up the session that the notification is about for long.
    """
    try:
        receiver = registry.load(root, name) if name else None
        if receiver is None or receiver.is_over:
            return True
        is_new = queue.put(receiver.dir, Message(id=ident, text=text), at_last=before_act)
    except UsageError:
        return True
    except SmError as error:
        problem = events.Problem(session=name, text=f"cannot be told: {error.message}")
        with contextlib.suppress(StateError):
            journal.record_once(root.journal, problem)
        return False
    if is_new:
        with contextlib.suppress(StateError):
            journal.record(root.journal, events.Told(session=name, text=text.split("\n", 1)[0]))
        registry.poke(receiver.dir)
    return True


LOST_S = 60.0
"""Time after which a message that is in no queue is not about to be put there, in seconds."""


class Waiter(Struct, frozen=True):
    """`session` is told when the turn ends in which the agent got message `ident`.

    `accepted_at` is when it got it, seconds since 1970; None: it waits still.
    """

    ident: str
    session: str
    accepted_at: float | None


def subscribe(directory: SessionDir, ident: str, session: str) -> None:
    """Subscribe `session`; to be called before the message is queued, so that none is missed.

    Raises:
        StateError: it cannot be noted; also where the session of `directory` is gone.

    """
    ensure_private_dir(directory.notify, parents=False)
    create_exclusive(directory.notify / ident, f"{session}\n")


def unsubscribe(directory: SessionDir, ident: str) -> None:
    """End the subscription: its waiter has been told, or there is nothing to tell."""
    discard(directory.notify / ident)


def list_waiters(directory: SessionDir) -> Iterator[Waiter]:
    """Yield everybody who waits; a waiter whose message is lost is cleared."""
    for ident in list_names(directory.notify):
        if waiter := _find_waiter(directory, ident):
            yield waiter


def _find_waiter(directory: SessionDir, ident: str) -> Waiter | None:
    path = directory.notify / ident
    who = read_harmless(path).decode("utf-8", "replace").strip()
    at = queue.find_accepted_at(directory, ident)
    if at is None and queue.find_place(directory, ident) is None:
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - LOST_S:
                unsubscribe(directory, ident)
        return None
    return Waiter(ident, who, at) if NAME.fullmatch(who) else None
