"""Carries out `sm send`: a message from the caller to any session; and lists a queue."""

from __future__ import annotations

import contextlib
import time

from msgspec import Struct, structs

from sm.base.act_guard import before_act
from sm.base.clock import Deadline
from sm.base.errors import SmError, StateError, UsageError
from sm.base.nonce import make_nonce
from sm.base.refusal import Outcome, Refusal, Status
from sm.messages import delivery, notification, queue
from sm.messages.display import summarise
from sm.messages.follow_up import tell_of_turns
from sm.messages.peer_texts import word_message
from sm.messages.queue import PERSON, Message, MessageFolder, Mode
from sm.sessions import agent_state, fence, monitors, pause, registry, spending_hold
from sm.sessions.address import check_living
from sm.sessions.caller import Caller
from sm.sessions.session import AnySession
from sm.store import events, journal
from sm.store.failpoint import crash_point
from sm.store.repair import repair

LOOK_S = 0.05
SHOWN_DONE = 5
"""Number of delivered messages that are listed."""


class Letter(Struct, frozen=True):
    """Request of `sm send`. `wait_s`: time that delivery is waited for, in seconds.

    `ident` and `source` belong to a message from another machine: its id, '' for a new one, and the
    session that has sent it there, '' for a person.
    """

    text: str
    mode: Mode = Mode.SEQUENTIAL
    notify: bool = False
    wait_s: float = 0.0
    ident: str = ""
    source: str = ""


class Sent(Struct, frozen=True):
    """A message under its id, and what has become of it so far."""

    ident: str
    outcome: Outcome


def send(caller: Caller, session: AnySession, letter: Letter) -> Sent:
    """Queue a message for `session`, hand it over if that can be done now, return its outcome.

    Raises:
        SmError: the session has ended, or does not take the message; it is not queued.
        UsageError: the text is no text, or a person wants to be told of a turn's end.

    """
    repair(session.root, session.dir)
    check_living(session)
    if letter.notify and caller.session is None:
        raise UsageError("--notify-on-stop tells a session: a person waits with 'sm wait'")
    message = _message(caller, letter)
    if not session.has_matrix:
        monitors.ensure(session)  # it hands over what has to wait
    tell_of_turns(session, agent_state.read(session.dir))  # before the message begins the next one
    if letter.notify:
        notification.subscribe(session.dir, message.id, caller.name)
    crash_point("send:noted")
    with fence.guard(caller.session):
        outcome = delivery.deliver(session, message, at_last=before_act)
    with contextlib.suppress(StateError):  # on a full disk it is queued all the same
        journal.record(session.root.journal, _make_event(session, caller, message, outcome))
    registry.poke(session.dir)
    deadline = Deadline(letter.wait_s)
    while outcome.is_open and not deadline.is_over:
        time.sleep(LOOK_S)
        outcome = delivery.find_outcome(session, message.id, outcome.refusal)
    outcome = outcome
    if outcome.status is Status.REFUSED:
        notification.unsubscribe(session.dir, message.id)
        raise SmError(f"'{session.address}' does not get the message: {outcome.sentence}")
    return Sent(message.id, outcome)


def _message(caller: Caller, letter: Letter) -> Message:
    text = check_text(letter.text)
    session = caller.session.address if caller.session else letter.source
    return Message(
        id=letter.ident or queue.make_id(),
        text=word_message(session, text, make_nonce(4)) if session else text,
        mode=letter.mode,
        sender=caller.name,
        notify=caller.name if letter.notify else "",
        source=session or PERSON,
        summary=summarise(text),
    )


def check_text(text: str) -> str:
    """Return `text`, if it is one.

    Raises:
        UsageError: it is not UTF-8, or nothing of it can be seen.

    """
    from sm.base.text import clean

    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError("the text is not UTF-8: convert it, or send the path of a file") from error
    if not clean(text):
        raise UsageError("the text is empty: nothing to send")
    return text


def _make_event(
    session: AnySession, caller: Caller, message: Message, outcome: Outcome
) -> events.MessageSent:
    return events.MessageSent(
        session=session.name,
        id=message.id,
        mode=str(message.mode),
        sender=caller.session.address if caller.session else "",
        status=str(outcome.status),
    )


class QueuedMessage(Struct, frozen=True, kw_only=True):
    """Message of a queue. `sender` and `notify` are written as addresses, '' for a person.

    `place`: waiting, under way, or delivered; `age_s` in seconds, since it was queued. `why` is the
    reason that it is held back, as a context is being replaced; '' otherwise.
    """

    id: str
    place: str
    mode: str
    age_s: float
    sender: str
    first_line: str
    characters: int
    notify: str = ""
    why: str = ""


class ShownEntry(QueuedMessage, frozen=True, kw_only=True):
    """A message of a queue with its whole text, as the agent gets it."""

    text: str


PLACES = {
    MessageFolder.HANDED: "under way",
    MessageFolder.WAITING: "waiting",
    MessageFolder.DONE: "delivered",
}


def list_entries(session: AnySession, done: int = SHOWN_DONE) -> list[QueuedMessage]:
    """List messages: those under way, those that wait, in order, and the last `done` delivered."""
    found = {place: queue.list_messages(session.dir, place) for place in PLACES}
    delivered = sorted(found[MessageFolder.DONE], key=lambda message: message.name)
    found[MessageFolder.DONE] = delivered[-done:]
    order = (MessageFolder.DONE, MessageFolder.HANDED, MessageFolder.WAITING)
    return [_entry(session, place, message) for place in order for message in found[place]]


def show(session: AnySession, ident: str) -> ShownEntry:
    """Return the message of this id, wherever it is.

    Raises:
        SmError: there is none of this id.

    """
    for place in (*MessageFolder, MessageFolder.WAITING):  # as it moves, on or back
        if message := queue.find(session.dir, place, ident):
            fields = structs.asdict(_entry(session, place, message))
            return ShownEntry(**fields, text=message.text)
    name = session.address
    raise SmError(f"there is no message '{ident}' of '{name}': 'sm queue {name}' lists the ids")


def _entry(session: AnySession, place: MessageFolder, message: Message) -> QueuedMessage:
    return QueuedMessage(
        id=message.id,
        place=PLACES[place],
        mode=message.mode,
        age_s=max(0.0, time.time() - message.created_at),
        sender=_name(session, message.sender),
        first_line=_first_line(message),
        characters=len(message.text),
        notify=_name(session, message.notify),
        why=_why(session, place, message),
    )


def _why(session: AnySession, place: MessageFolder, message: Message) -> str:
    if place is MessageFolder.WAITING and pause.is_paused(session.dir):
        return Refusal.PAUSED.sentence
    if place is MessageFolder.WAITING and not spending_hold.passes(session.dir, message.id):
        return Refusal.BRAKED.sentence
    held = place is MessageFolder.WAITING and not queue.passes(session.dir, message.id)
    return Refusal.HOLD.sentence if held else ""


def _first_line(message: Message) -> str:
    """Return the first line of what was said, without its sender and without our frame."""
    lines = [line for line in message.text.split("\n") if line.strip()]
    if not message.sender or len(lines) == 1:
        return lines[0]
    return message.summary if message.summary and len(lines) > 2 else lines[1]


def _name(session: AnySession, ident: str) -> str:
    try:
        return registry.load(session.root, ident).address if ident else ""
    except SmError:
        return ident
