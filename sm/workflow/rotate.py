"""Carries the rotation of a session's context on, by whoever comes by, under the delivery lock.

`sm.rotation` decides; here is how each act is done. Nothing is lost when this is killed: the
record says what was about to be done, and every act may be repeated.
"""

from __future__ import annotations

import contextlib
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from sm.adapters.agent.screen import Prompt
from sm.adapters.tmux import TmuxError
from sm.errors import StateError, TemporaryError
from sm.rotation import Act, Cause, Limits, Move, Rotation, Step, begin, decide
from sm.rotationtexts import message
from sm.session import agent, agentstate, delivery, handoff, interruption, queue, registry
from sm.session.clearing import Cleared, clear
from sm.session.queue import Message, Mode
from sm.session.registry import IssueSession, Session
from sm.session.submission import Target
from sm.store import journal, lock
from sm.store.crash import crash_point
from sm.workflow import documents, host, outcomes, people, policy
from sm.workflow.policy import Policy
from sm.workflow.standing import KEYS, ident, standing

ROUNDS = 30
"""Decisions in one pass; it comes to rest after a few."""
LOCK_S = 30.0
RETRY_S = 1.0

Relaunch = Callable[[int], None]
"""Ends the agent and starts it anew, as the launch of this number, unless that has happened."""


@dataclass(frozen=True)
class Rotator:
    """A session whose context may be replaced; `relaunch` is None for who may not start agents."""

    target: Target
    policy: Policy
    relaunch: Relaunch | None = None


def advance(rotator: Rotator) -> float:
    """Do what is due; returns when to look again at the latest, seconds since 1970.

    Raises:
        TemporaryError: tmux did not answer; it is tried again.

    """
    directory = rotator.target.session.dir
    if not handoff.is_wanted(directory):
        return math.inf
    try:
        with lock.hold(directory.delivery_lock, timeout_s=LOCK_S):
            return _advance(rotator)
    except lock.HeldError:
        return time.time() + RETRY_S


def rotate(session: Session) -> None:
    """Do what is due now, for the hook of the agent's turn that has ended; its monitor goes on.

    Raises:
        UsageError: the session's configuration cannot be used.

    """
    rotator = rotator_of(session)
    advance(rotator)
    with contextlib.suppress(TemporaryError, TmuxError):
        delivery.drain(rotator.target)
    registry.poke(session.dir)


def rotator_of(session: Session) -> Rotator:
    """The session with what its configuration says, for who may not start its agent anew.

    Raises:
        UsageError: its configuration cannot be used.

    """
    if isinstance(session, IssueSession):
        ctx = host.context_of(session)
        return Rotator(ctx.target(session), ctx.policy(session))
    found = host.of(session)
    return Rotator(found.target(session), policy.made(session, found.machine))


def begin_cycle(rotator: Rotator, cause: Cause, percent: float | None) -> Rotation | None:
    """Put a cycle on record, which `advance` carries on; None where there is a rotation already.

    Raises:
        StateError: there is no place for its document.
        HeldError: somebody is delivering something for very long.

    """
    session = rotator.target.session
    folder = documents.folder(session, rotator.policy.cycle)
    with lock.hold(session.dir.delivery_lock, timeout_s=LOCK_S):
        if handoff.record(session.dir) or handoff.pending(session.dir):
            return None
        documents.prepare(folder)
        context = agentstate.read(session.dir).context
        new = begin(secrets.token_hex(8), cause, time.time(), context)
        record = structs.replace(new, percent=percent, folder=str(folder))
        _save(rotator.target, record)
    at = "" if percent is None else f" at {percent:.0f}%"
    _record(rotator.target, f"cycle begins{at} ({cause})")
    return record


def _advance(rotator: Rotator) -> float:
    target = rotator.target
    for _ in range(ROUNDS):
        record = _current(rotator)
        if record is None:
            return math.inf
        seen = standing(target, record, rotator.policy)
        move = decide(record, seen, Limits(document_s=rotator.policy.cycle.timeout_s))
        crash_point("rotate:decided")
        if move.record != record:
            _save(target, move.record)
        crash_point(f"rotate:{move.act}")
        again_at = _ACTS[move.act](rotator, move)
        if again_at is not None:
            return min(again_at, move.until)
    return time.time() + RETRY_S


def _current(rotator: Rotator) -> Rotation | None:
    """The record, with what the agent has wished; None where there is nothing to do."""
    directory = rotator.target.session.dir
    try:
        record, wish = handoff.record(directory), handoff.pending(directory)
    except StateError as error:
        _give_up_damaged(rotator, error)
        return None
    if wish is not None:
        record = _taken_up(rotator.target, record, wish)
    if record is None:
        handoff.release(directory)
    return record


def _taken_up(target: Target, record: Rotation | None, wish: handoff.Handoff) -> Rotation | None:
    """The record with the wish in it: it begins one, or gives one its document.

    One of a context that is gone already comes too late; that of the next context has to wait.
    """
    if record and wish.context and wish.context != record.context:
        return record
    if record is None:
        context = wish.context or agentstate.read(target.session.dir).context
        record = begin(secrets.token_hex(8), Cause.HANDOFF, time.time(), context, wish.path)
        _record(target, f"handoff with {wish.path}")
        _save(target, record)
    elif record.step in (Step.REQUEST, Step.DOCUMENT, Step.QUIET):
        record = structs.replace(record, document=wish.path)
        _record(target, f"its document is {wish.path}")
        _save(target, record)
    crash_point("rotate:taken-up")
    handoff.forget_wish(target.session.dir)
    return record


def _give_up_damaged(rotator: Rotator, error: StateError) -> None:
    """Whatever has happened to the files, the agent must not be held up by them."""
    session = rotator.target.session
    text = f"could not be given a new context: {error.message}"
    people.note(session, text, "damaged", rotator.policy)
    handoff.forget_wish(session.dir)
    handoff.drop(session.dir)


def _save(target: Target, record: Rotation) -> None:
    handoff.save(target.session.dir, record, tuple(ident(record, key) for key in KEYS))


def _wait(_rotator: Rotator, move: Move) -> float | None:
    return move.until


def _tell(rotator: Rotator, move: Move) -> float | None:
    """Queue the message of the step, once, and hand it over; the caller holds the lock."""
    target, record = rotator.target, move.record
    directory, key = target.session.dir, record.key
    if record.step is Step.RESUME:
        record = _kept(target, record) or record
        handoff.note_last(directory, Path(record.document))
    new = Message(
        id=ident(record, key),
        text=_text(rotator, record, key),
        mode=Mode.SEQUENTIAL if record.step is Step.RESUME else Mode.STEER,
    )
    if queue.put(directory, new):
        _record(target, f"{key}: {new.text.splitlines()[0]}")
    crash_point("rotate:queued")
    delivery.drain_held(target)
    return None if queue.accepted_at(directory, new.id) else time.time() + RETRY_S


def _text(rotator: Rotator, record: Rotation, key: str) -> str:
    sections = rotator.policy.cycle.sections
    found = None
    if record.step is Step.DOCUMENT:
        found = documents.written(Path(record.folder), record.began_at, sections)
    return message(
        record,
        key,
        folder=record.folder,
        sections=sections,
        missing=found.missing if found else (),
        path=_path(rotator, record) or (found.path if found else ""),
    )


def _path(rotator: Rotator, record: Rotation) -> str:
    """Where the document can be read: in its place, or our copy where it is gone from there."""
    if record.kept and not handoff.is_readable(Path(record.document)):
        return str(rotator.target.session.dir.document)
    return record.document


def _kept(target: Target, record: Rotation) -> Rotation | None:
    """The record once the document is copied; None where there is none to be read any more."""
    try:
        handoff.keep(target.session.dir, Path(record.document))
    except OSError:
        return record if record.kept else None
    if not record.kept:
        record = structs.replace(record, kept=True)
        _save(target, record)
    return record


def _interrupt(rotator: Rotator, move: Move) -> float | None:
    target, record = rotator.target, move.record
    known = agent.load(target.session.dir)
    if known is None or interruption.is_compacting(target):
        return time.time() + RETRY_S
    pane, screen = delivery.look(target, known.pane_id)
    if screen.prompt is Prompt.BUSY and target.profile.interrupt_key:
        interruption.interrupt(target, pane, screen, Message(id=ident(record, "stop"), text=""))
        # What the conversation says of it goes with the context.
        target.session.dir.interrupted.unlink(missing_ok=True)
        _record(target, "turn interrupted")
    return None


def _clear(rotator: Rotator, move: Move) -> float | None:
    target, record = rotator.target, _kept(rotator.target, move.record)
    if record is None:
        return None  # it has just gone, which the next decision sees
    crash_point("rotate:kept")
    found = clear(target, f"{record.id}.clear{record.clears}", record.context)
    crash_point("rotate:cleared")
    if isinstance(found, delivery.Reason):
        return _blocked(target, record, found)
    if found is Cleared.TAKEN or record.obstacle:
        taken = found is Cleared.TAKEN
        _save(target, structs.replace(record, cleared=taken, obstacle="", since=time.time()))
    _record(target, f"clear {record.clears}: {found}")
    return None


def _blocked(target: Target, record: Rotation, reason: delivery.Reason) -> float:
    if record.obstacle != reason:
        since = record.since if record.obstacle else time.time()
        _save(target, structs.replace(record, obstacle=str(reason), since=since))
        _record(target, f"not cleared yet: {reason}")
    return time.time() + RETRY_S


def _relaunch(rotator: Rotator, move: Move) -> float | None:
    target, record = rotator.target, move.record
    if rotator.relaunch is None:
        registry.poke(target.session.dir)
        return time.time() + RETRY_S
    if not record.generation:
        known = agent.load(target.session.dir)
        record = structs.replace(record, generation=known.generation + 1 if known else 1)
        _save(target, record)
        _record(target, "its agent is started anew: the clear had no effect")
    crash_point("rotate:relaunching")
    rotator.relaunch(record.generation)
    return time.time() + RETRY_S


def _report(rotator: Rotator, move: Move) -> float | None:
    session, record = rotator.target.session, move.record
    text = f"cannot be given a new context yet: {move.reason}"
    people.note(session, text, f"{record.id}:{record.step}", rotator.policy)
    return None


def _finish(rotator: Rotator, move: Move) -> float | None:
    target, record = rotator.target, move.record
    outcomes.finished(target, record, rotator.policy)
    crash_point("rotate:finished")
    handoff.drop(target.session.dir)
    return None


def _give_up(rotator: Rotator, move: Move) -> float | None:
    outcomes.given_up(rotator.target, move.record, move.reason, rotator.policy)
    crash_point("rotate:given-up")
    handoff.drop(rotator.target.session.dir)
    return None


def _record(target: Target, what: str) -> None:
    journal.record(target.session.root.journal, "rotation", target.session.name, what)


_ACTS: dict[Act, Callable[[Rotator, Move], float | None]] = {
    Act.WAIT: _wait,
    Act.TELL: _tell,
    Act.INTERRUPT: _interrupt,
    Act.CLEAR: _clear,
    Act.RELAUNCH: _relaunch,
    Act.REPORT: _report,
    Act.FINISH: _finish,
    Act.GIVE_UP: _give_up,
}
"""What each act does; it returns when to look again, None for at once."""
