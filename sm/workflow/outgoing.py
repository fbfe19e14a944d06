"""`sm send`: a message from whoever calls to any session; and what its queue holds."""

from __future__ import annotations

import secrets
import time

from msgspec import Struct

from sm.errors import SmError, UsageError
from sm.peers import said_by
from sm.session import delivery, handoff, queue, registry, waiters
from sm.session.caller import Caller
from sm.session.delivery import Outcome, Status
from sm.session.queue import Message, Mode, Place
from sm.session.registry import AdHocSession, AnySession
from sm.session.submission import Target
from sm.session.targets import address, check_living
from sm.store import journal
from sm.store.crash import crash_point
from sm.store.repair import repair
from sm.workflow import host, monitors
from sm.workflow.messages import tell_of_turns

LOOK_S = 0.05
SHOWN_DONE = 5
"""Delivered messages that are listed."""


class Letter(Struct, frozen=True):
    """What `sm send` was asked for. `wait_s`: so long delivery is waited for."""

    text: str
    mode: Mode = Mode.SEQUENTIAL
    notify: bool = False
    wait_s: float = 0.0


class Sent(Struct, frozen=True):
    """A message under its id, and what has become of it so far."""

    ident: str
    outcome: Outcome


def send(caller: Caller, session: AnySession, letter: Letter) -> Sent:
    """Queue a message for `session`, hand it over if that can be done now, say what came of it.

    Raises:
        SmError: the session has ended, or does not take the message; it is not queued.
        UsageError: the text is no text, or a person wants to be told of a turn's end.
        TmuxBusyError: tmux did not answer; the message is queued all the same.

    """
    repair(session.root, session.dir)
    check_living(session)
    if letter.notify and caller.session is None:
        raise UsageError("--notify-on-stop tells a session: a person waits with 'sm wait'")
    target, message = host.target_of(session), _message(caller, letter)
    if isinstance(session, AdHocSession):
        monitors.ensure(session)  # it hands over what has to wait
    tell_of_turns(target)  # before the message begins the next one
    if letter.notify:
        waiters.add(session.dir, message.id, caller.name)
    crash_point("send:noted")
    outcome = delivery.deliver(target, message)
    journal.record(session.root.journal, "message", session.name, _story(caller, message, outcome))
    registry.poke(session.dir)
    if outcome.status is Status.REFUSED:
        waiters.remove(session.dir, message.id)
        raise SmError(f"'{address(session)}' does not get the message: {outcome.reason}")
    return Sent(message.id, _awaited(target, message, outcome, letter.wait_s))


def _message(caller: Caller, letter: Letter) -> Message:
    text = checked(letter.text)
    if caller.session:
        text = said_by(address(caller.session), text, secrets.token_hex(4))
    notify = caller.name if letter.notify else ""
    ident, mode = queue.new_id(), letter.mode
    return Message(id=ident, text=text, mode=mode, sender=caller.name, notify=notify)


def checked(text: str) -> str:
    """`text`, if it is one.

    Raises:
        UsageError: it is not UTF-8, or nothing of it can be seen.

    """
    from sm.text import clean

    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError("the text is not UTF-8: convert it, or send the path of a file") from error
    if not clean(text):
        raise UsageError("the text is empty: nothing to send")
    return text


def _story(caller: Caller, message: Message, outcome: Outcome) -> str:
    sender = address(caller.session) if caller.session else "a person"
    return f"{message.id} {message.mode} from {sender}: {outcome.status}"


def _awaited(target: Target, message: Message, outcome: Outcome, wait_s: float) -> Outcome:
    deadline = time.monotonic() + wait_s
    while not outcome.delivered and time.monotonic() < deadline:
        time.sleep(LOOK_S)
        reason = outcome.reason
        outcome = delivery.outcome(target, message.id, reason)
    return outcome


class Entry(Struct, frozen=True, kw_only=True):
    """A message of a queue. `sender` and `notify` are how they are addressed, '' for a person.

    `place`: waiting, under way, or delivered; `age_s` in seconds, since it was queued. `why` it
    waits where it is held back, as a context is being replaced; '' otherwise.
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


PLACES = {Place.HANDED: "under way", Place.WAITING: "waiting", Place.DONE: "delivered"}


def entries(session: AnySession) -> list[Entry]:
    """What is under way, what waits, in order, and what was delivered last, the newest last."""
    found = {place: queue.messages(session.dir, place) for place in PLACES}
    done = sorted(found[Place.DONE], key=lambda message: message.name)
    found[Place.DONE] = done[-SHOWN_DONE:]
    order = (Place.DONE, Place.HANDED, Place.WAITING)
    return [_entry(session, place, message) for place in order for message in found[place]]


def _entry(session: AnySession, place: Place, message: Message) -> Entry:
    return Entry(
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


def _why(session: AnySession, place: Place, message: Message) -> str:
    held = place is Place.WAITING and not handoff.passes(session.dir, message.id)
    return delivery.Reason.HOLD if held else ""


def _first_line(message: Message) -> str:
    lines = [line for line in message.text.split("\n") if line.strip()]
    return lines[1] if message.sender and len(lines) > 1 else lines[0]  # without who has sent it


def _name(session: AnySession, ident: str) -> str:
    try:
        return address(registry.load(session.root, ident)) if ident else ""
    except SmError:
        return ident
