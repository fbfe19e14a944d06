"""How each act of a rotation is done. Each may be repeated; the caller holds the delivery lock."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from msgspec import structs

from sm.adapters.agent.screen import Prompt
from sm.errors import SmError
from sm.rotation import Act, Move, Rotation, Step
from sm.rotationtexts import message
from sm.session import agent, delivery, handoff, interruption, queue
from sm.session.clearing import Cleared, clear
from sm.session.queue import Message, Mode, Place
from sm.session.submission import Target
from sm.store import journal
from sm.store.crash import crash_point
from sm.store.files import discard
from sm.workflow import documents, monitors, outcomes, people, protocol
from sm.workflow.rotationrecord import kept, note, note_begun, save, withdraw
from sm.workflow.rotator import Rotator
from sm.workflow.standing import ident

RETRY_S = 1.0


def perform(rotator: Rotator, move: Move) -> float | None:
    """Do what was decided; returns when to look again, seconds since 1970, None for at once.

    Raises:
        TemporaryError: tmux did not answer; it is tried again.

    """
    return _ACTS[move.act](rotator, move)


def _wait(_rotator: Rotator, move: Move) -> float | None:
    return move.until


def _tell(rotator: Rotator, move: Move) -> float | None:
    """Queue the message of the step, once, and hand it over; the caller holds the lock."""
    target, record = rotator.target, move.record
    directory, key = target.session.dir, record.key
    opens = record.step is Step.RESUME
    if opens:
        record = kept(target, record) or record
        note_begun(target, record)
        _withdraw_others(target, ident(record, key))
    new = Message(
        id=ident(record, key),
        text=_text(rotator, record, key),
        mode=Mode.SEQUENTIAL if opens else Mode.STEER,
        opens=opens,
    )
    if queue.put(directory, new):
        note(target, f"{key}: {new.text.splitlines()[0]}")
    crash_point("rotate:queued")
    delivery.drain_held(target)
    return None if queue.accepted_at(directory, new.id) else time.time() + RETRY_S


def _withdraw_others(target: Target, ident: str) -> None:
    """Take back what was to open an earlier context, which an interruption has given back."""
    directory = target.session.dir
    for waiting in queue.messages(directory, Place.WAITING):
        if waiting.opens and waiting.id != ident:
            queue.withdraw(directory, waiting.id)


def _text(rotator: Rotator, record: Rotation, key: str) -> str:
    sections = rotator.policy.cycle.sections
    found = None
    if record.step is Step.DOCUMENT:
        found = documents.written(Path(record.folder), record.before, sections)
    text = message(
        record,
        key,
        folder=record.folder,
        sections=sections,
        missing=found.missing if found else (),
        path=_path(rotator, record) or (found.path if found else ""),
    )
    more = protocol.repeated(rotator.target) if record.step is Step.RESUME else ""
    return f"{text}\n\n{more}" if more else text


def _path(rotator: Rotator, record: Rotation) -> str:
    """Where the document can be read: in its place, or our copy where it is gone from there."""
    if record.kept and not handoff.is_readable(Path(record.document)):
        return str(rotator.target.session.dir.document)
    return record.document


def _interrupt(rotator: Rotator, move: Move) -> float | None:
    target, record = rotator.target, move.record
    known = agent.load(target.session.dir)
    if known is None or interruption.is_compacting(target):
        return time.time() + RETRY_S
    pane, screen = delivery.look(target, known.pane_id)
    if screen.prompt is Prompt.BUSY and target.profile.interrupt_key:
        by = Message(id=ident(record, "stop"), text="")
        screen = interruption.interrupt(target, pane, screen, by) or screen
        # What the conversation says of it goes with the context.
        discard(target.session.dir.interrupted)
    if screen.prompt is not Prompt.IDLE:
        return time.time() + RETRY_S
    note(target, "turn interrupted")
    save(target, structs.replace(record, interrupted=True))
    return None


def _clear(rotator: Rotator, move: Move) -> float | None:
    target, record = rotator.target, kept(rotator.target, move.record)
    if record is None:
        return None  # it has just gone, which the next decision sees
    crash_point("rotate:kept")
    found = clear(target, f"{record.id}.clear{record.clears}", record.context)
    crash_point("rotate:cleared")
    if isinstance(found, delivery.Reason):
        return _blocked(target, record, found)
    if found is Cleared.TAKEN or record.obstacle:
        taken = found is Cleared.TAKEN
        save(target, structs.replace(record, cleared=taken, obstacle="", since=time.time()))
    note(target, f"clear {record.clears}: {found}")
    return None


def _blocked(target: Target, record: Rotation, reason: delivery.Reason) -> float:
    if record.obstacle != reason:
        since = record.since if record.obstacle else time.time()
        save(target, structs.replace(record, obstacle=str(reason), since=since))
        note(target, f"not cleared yet: {reason}")
    return time.time() + RETRY_S


def _relaunch(rotator: Rotator, move: Move) -> float | None:
    target, record = rotator.target, move.record
    if rotator.relaunch is None:
        monitors.ensure(target.session)
        return time.time() + RETRY_S
    if not record.generation:
        known = agent.load(target.session.dir)
        number = known.generation + 1 if known else 1
        record = structs.replace(record, generation=number, since=time.time())
        save(target, record)
        note(target, "its agent is started anew: the clear had no effect")
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
    note_begun(target, record)
    _end(target, record, lambda: outcomes.finished(target, record, rotator.policy))
    return None


def _give_up(rotator: Rotator, move: Move) -> float | None:
    target, record = rotator.target, move.record
    _end(target, record, lambda: outcomes.given_up(target, record, move.reason, rotator.policy))
    return None


def _end(target: Target, record: Rotation, tell: Callable[[], None]) -> None:
    """Tell what came of it, then forget it; what cannot be told must not hold the agent up."""
    withdraw(target, record)
    try:
        tell()
    except SmError as error:
        journal.record(target.session.root.journal, "problem", target.session.name, error.message)
    crash_point("rotate:told")
    handoff.drop(target.session.dir)


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
