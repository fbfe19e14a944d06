"""Slot of a session, or its place in the line, for reading: `sm/issues/work/slots.py` writes it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from sm.sessions.session import IssueSession
from sm.store.paths import ProjectDir


class Slot(Struct, frozen=True):
    """Times since which the session holds a slot, and waits for one (seconds since 1970).

    None: it does not.
    """

    held_at: float | None = None
    waits_at: float | None = None


def read_slot(session: IssueSession) -> Slot:
    """Return what is on record for the session. No other session's record is read."""
    directory = find_directory(session)
    held_at = read_time(directory.slots / session.name)
    if held_at is not None:
        return Slot(held_at)
    return Slot(None, read_time(directory.slot_line / session.name))


def find_directory(session: IssueSession) -> ProjectDir:
    """Return the directory of the session's project, which may be missing."""
    return session.root.project(session.record.project)


def read_time(path: Path) -> float | None:
    """Return the time of a file; None if it is missing."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return None
