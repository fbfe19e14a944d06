"""How much an agent has written in its records, and how much of that was read.

It is loaded with the passes, so it knows nothing of databases and prices.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from sm.plugins.cost.folder import find_folder
from sm.plugins.cost.ledger.records.record import Reader, find_reader
from sm.sessions import agent, agent_state, window
from sm.sessions.agent_state import State
from sm.sessions.session import Session
from sm.store.files import discard, read_harmless, write_atomic
from sm.store.paths import Root

SLACK_S = 60.0
"""A session's first request may seem to be so much older than its record."""
SILENT_S = 60.0
"""An agent at work has written something within so long of what its hooks tell. Hooks of a person
may keep it from that for as long."""
LATE_S = 2.0
"""Lines are written about 0.1 s late."""


class Fault(StrEnum):
    """Why the record of the present conversation does not tell what the agent uses."""

    NONE = ""
    MISSING = "missing"
    """It was there, and is not any more, or is no plain file of ours."""
    SILENT = "silent"
    """The agent is at work, and nothing is added to it."""


class Look(Struct, frozen=True):
    """What can be seen of a session's records without reading them.

    `bytes` is what all files of the conversation have together. A client that is gone and was busy
    `was_killed`.
    """

    ident: str
    bytes: int
    fault: Fault = Fault.NONE
    is_busy: bool = False
    was_killed: bool = False

    def note(self) -> str:
        """Write it as one line."""
        marks = ("busy" if self.is_busy else "", "killed" if self.was_killed else "")
        return " ".join(filter(None, (self.ident or "-", str(self.bytes), self.fault, *marks)))


def find_beginning(session: Session) -> float:
    """What was asked for earlier (seconds since 1970) is not the session's."""
    return session.record.created_at - SLACK_S


def look(session: Session, reader: Reader, present: window.Window) -> Look:
    """Look at the records of the present conversation."""
    assert present.conversation is not None
    sizes = (find_size(path) or 0 for path in reader.list_files(present.conversation, present.id))
    state = agent_state.read(session.dir)
    is_busy = state.state is State.BUSY
    is_gone = is_busy and _is_gone(session)
    return Look(
        ident=present.id,
        bytes=sum(sizes),
        fault=_find_fault(session, present, state, is_working=is_busy and not is_gone),
        is_busy=is_busy and not is_gone,
        was_killed=is_gone,
    )


def _is_gone(session: Session) -> bool:
    """Whether the agent was launched, and does not run any more."""
    process = agent.read_process(session.dir)
    return process is not None and not agent.is_alive(session.dir)


def find_fault(session: Session) -> Fault:
    """Why nobody knows what the session uses just now, if its record does not tell."""
    reader, present = find_reader(session.profile.spending), window.read(session.dir)
    if reader is None or present.conversation is None:
        return Fault.NONE
    return look(session, reader, present).fault


def _find_fault(
    session: Session, present: window.Window, state: agent_state.AgentState, *, is_working: bool
) -> Fault:
    assert present.conversation is not None
    record = _stat(present.conversation)
    written_at = record.st_mtime if record else 0.0
    if record is None and _was_there(session, present.id):
        return Fault.MISSING
    mark = find_silence(session)
    told_at = max(state.since, state.active_at)
    if not is_working or written_at >= told_at - LATE_S:
        if os.path.lexists(mark):
            discard(mark)
        return Fault.NONE
    known = f"{present.id or '-'} {written_at:.6f}"
    said = read_harmless(mark, 200).decode("utf-8", "replace").strip()
    now, (since, _, of) = time.time(), said.partition(" ")
    begun = _read_number(since)
    if of != known or begun is None or begun > now:  # it is seen first, or the clock was set back
        with contextlib.suppress(OSError):  # the first look at a state root
            write_atomic(mark, f"{now:.6f} {known}\n")
        return Fault.NONE
    return Fault.SILENT if now - begun >= SILENT_S else Fault.NONE


def _read_number(text: str) -> float | None:
    with contextlib.suppress(ValueError):
        return float(text)
    return None


def _was_there(session: Session, ident: str) -> bool:
    """Whether anything was noted of the conversation's files before."""
    known, _, rest = read_size(session).partition(" ")
    size, _, fault = rest.partition(" ")
    return known == (ident or "-") and (size != "0" or fault.startswith(Fault.MISSING))


def is_readable(found: os.stat_result) -> bool:
    """Whether it is a plain file of this user: no other one is opened."""
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def find_size(path: Path) -> int | None:
    """Bytes of a record, None if it is not there, or no plain file of ours."""
    found = _stat(path)
    return found.st_size if found else None


def _stat(path: Path) -> os.stat_result | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found if is_readable(found) else None


def note_look(session: Session, seen: Look) -> None:
    """Note what was seen when it was read."""
    write_atomic(find_note(session), f"{seen.note()}\n")


def read_size(session: Session) -> str:
    """Return what was noted."""
    return read_harmless(find_note(session), 400).decode("utf-8", "replace").strip()


def find_read_at(session: Session) -> float:
    """When that was noted last, in seconds since 1970; 0 for never."""
    try:
        return find_note(session).stat().st_mtime
    except OSError:
        return 0.0


def find_note(session: Session) -> Path:
    """Where that is noted, also once the session is gone."""
    return find_folder(session.root) / f"{session.name}.read"


def find_silence(session: Session) -> Path:
    """Where it is noted since when the agent works, and its record does not grow."""
    return find_note(session).with_suffix(".silent")


def has_grown(session: Session) -> bool:
    """Whether the records of the present conversation have changed since they were read last.

    A session that has just ended is also to be seen to.
    """
    reader = find_reader(session.profile.spending)
    present = window.read(session.dir)
    if reader is None:
        return False
    if present.conversation is None:
        return is_left(session)
    return read_size(session) != look(session, reader, present).note()


def is_left(session: Session) -> bool:
    """Whether the session is gone, and was not seen to since."""
    return find_note(session).exists() and not session.dir.path.exists()


def list_notes_of_gone(root: Root) -> Iterator[Path]:
    """The notes of sessions that are gone."""
    for note in find_folder(root).glob("*.read"):
        if not root.session(note.stem).path.exists():
            yield note
