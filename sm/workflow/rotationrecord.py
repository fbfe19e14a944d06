"""The record of a rotation, and what goes with it: what is held back, taken back, kept, noted."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from sm.rotation import Rotation, keys
from sm.session import agentstate, handoff, queue
from sm.session.submission import Target
from sm.store import journal
from sm.store.crash import crash_point
from sm.workflow.standing import ident


def save(target: Target, record: Rotation) -> None:
    """Write the record, hold back what it holds back, take back what was of an earlier step."""
    handoff.save(target.session.dir, record)
    crash_point("rotate:saved")
    align(target, record)
    withdraw(target, record, but=record.key)


def align(target: Target, record: Rotation) -> None:
    """Let nothing reach the agent but the message of the record's step."""
    passing = (ident(record, record.key),) if record.key else ()
    handoff.align(target.session.dir, record, passing)


def withdraw(target: Target, record: Rotation, but: str = "") -> None:
    """Take the record's messages back that nobody has handed over, but for one."""
    for key in keys(record):
        if key != but:
            queue.withdraw(target.session.dir, ident(record, key))


def note(target: Target, what: str) -> None:
    """Tell of it in the journal."""
    journal.record(target.session.root.journal, "rotation", target.session.name, what)


def kept(target: Target, record: Rotation) -> Rotation | None:
    """The record once the document is copied; None where there is none to be read any more."""
    if record.kept:
        return record
    try:
        handoff.keep(target.session.dir, Path(record.document))
    except OSError:
        return None
    copied = structs.replace(record, kept=True)
    save(target, copied)
    return copied


def note_begun(target: Target, record: Rotation) -> None:
    """Remember with which document the new context was begun, and its name once that is known."""
    context = agentstate.read(target.session.dir).context
    fresh = context if context != record.context else ""
    handoff.note_begun(target.session.dir, Path(record.document), fresh)
