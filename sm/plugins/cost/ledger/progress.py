"""Progress of the ledger: what agents have written, what of it was read, what has no price yet.

This module is loaded with the passes, so it knows nothing of databases and prices. A limit that
looks at old sums would let anything through, so whoever weighs limits asks here first whether the
sums are current.
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

from sm.adapters.agent.profile import Profile
from sm.issues.meters import BlindError
from sm.plugins.cost.ledger.records.record import RecordReader, find_reader
from sm.plugins.cost.settings import find_folder
from sm.sessions import agent, agent_state, window
from sm.sessions.agent_state import State
from sm.sessions.session import Session
from sm.store.files import discard, ensure_private_dir, list_names, read_harmless, write_atomic
from sm.store.paths import Root

SLACK_S = 60.0
"""A session's first request may seem to be so much older than its record."""
SILENT_S = 60.0
"""An agent at work has written something within so long of what its hooks tell. Hooks of a person
may keep it from that for as long."""
WRITTEN_LATE_S = 2.0
"""Lines are written about 0.1 s late."""


class RecordFault(StrEnum):
    """Why the record of the present conversation does not tell what the agent uses."""

    NONE = ""
    MISSING = "missing"
    """The file was there, and is not any more, or is no plain file of ours."""
    SILENT = "silent"
    """The agent is at work, and nothing is added to it."""


class RecordState(Struct, frozen=True):
    """Facts about a session's records that are seen without reading them.

    `bytes` is what all files of the conversation have together. A client that is gone and was busy
    `was_killed`.
    """

    ident: str
    bytes: int
    fault: RecordFault = RecordFault.NONE
    is_busy: bool = False
    was_killed: bool = False

    def note(self) -> str:
        """Write it as one line."""
        marks = ("busy" if self.is_busy else "", "killed" if self.was_killed else "")
        return " ".join(filter(None, (self.ident or "-", str(self.bytes), self.fault, *marks)))


def find_beginning(session: Session) -> float:
    """Find the beginning of a session (seconds since 1970): earlier requests are not its own."""
    return session.record.created_at - SLACK_S


def look(session: Session, reader: RecordReader, present: window.Window) -> RecordState:
    """Look at the records of the present conversation."""
    assert present.conversation is not None
    sizes = (find_size(path) or 0 for path in reader.list_files(present.conversation, present.id))
    state = agent_state.read(session.dir)
    is_busy = state.state is State.BUSY
    # A client that was launched, and does not run any more.
    is_gone = (
        is_busy and agent.read_process(session.dir) is not None and not agent.is_alive(session.dir)
    )
    return RecordState(
        ident=present.id,
        bytes=sum(sizes),
        fault=_find_fault(session, present, state, is_working=is_busy and not is_gone),
        is_busy=is_busy and not is_gone,
        was_killed=is_gone,
    )


def find_fault(session: Session) -> RecordFault:
    """Why nobody knows what the session uses just now, if its record does not tell."""
    reader, present = find_reader(session.profile.spending), window.read(session.dir)
    if reader is None or present.conversation is None:
        return RecordFault.NONE
    return look(session, reader, present).fault


def _find_fault(
    session: Session, present: window.Window, state: agent_state.AgentState, *, is_working: bool
) -> RecordFault:
    assert present.conversation is not None
    record = _stat(present.conversation)
    written_at = record.st_mtime if record else 0.0
    if record is None and _was_there(session, present.id):
        return RecordFault.MISSING
    mark = find_silence(session)
    told_at = max(state.since, state.active_at)
    if not is_working or written_at >= told_at - WRITTEN_LATE_S:
        if os.path.lexists(mark):
            discard(mark)
        return RecordFault.NONE
    known = f"{present.id or '-'} {written_at:.6f}"
    said = read_harmless(mark, 200).decode("utf-8", "replace").strip()
    now, (since, _, of) = time.time(), said.partition(" ")
    begun = _read_number(since)
    if of != known or begun is None or begun > now:  # it is seen first, or the clock was set back
        with contextlib.suppress(OSError):  # the first look at a state root
            write_atomic(mark, f"{now:.6f} {known}\n")
        return RecordFault.NONE
    return RecordFault.SILENT if now - begun >= SILENT_S else RecordFault.NONE


def _read_number(text: str | bytes) -> float | None:
    with contextlib.suppress(ValueError):
        return float(text)
    return None


def _was_there(session: Session, ident: str) -> bool:
    """Whether anything was noted of the conversation's files before."""
    known, _, rest = read_size(session).partition(" ")
    size, _, fault = rest.partition(" ")
    return known == (ident or "-") and (size != "0" or fault.startswith(RecordFault.MISSING))


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


def note_look(session: Session, seen: RecordState) -> None:
    """Note what was seen when it was read."""
    write_atomic(find_note(session), f"{seen.note()}\n")


def read_size(session: Session) -> str:
    """Return what was noted."""
    return read_harmless(find_note(session), 400).decode("utf-8", "replace").strip()


def find_read_at(session: Session) -> float:
    """Find when that was noted last, in seconds since 1970; 0 for never."""
    try:
        return find_note(session).stat().st_mtime
    except OSError:
        return 0.0


def find_note(session: Session) -> Path:
    """Find where that is noted, also once the session is gone."""
    return find_folder(session.root) / f"{session.name}.read"


def find_silence(session: Session) -> Path:
    """Find where it is noted since when the agent works, and its record does not grow."""
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


# Prices that nobody needs at once: the library takes 0.2 s to load

SHOWN_S = 60.0
"""Seconds between two look-ups of prices that only `sm status` waits for."""
STAMP = "priced"
"""The file whose time says when prices were looked up last."""
WAITING = "unpriced"
"""There since requests were entered whose price was not looked up."""


def note_pricing(root: Root) -> None:
    """Note that it is done now."""
    folder = find_folder(root)
    discard(folder / WAITING)
    write_atomic(folder / STAMP, "")


def note_unpriced(root: Root) -> None:
    """Note that requests wait for it."""
    write_atomic(find_folder(root) / WAITING, "")


def find_priced_at(root: Root) -> float:
    """Find when prices were looked up last, in seconds since 1970; 0 if never."""
    try:
        return os.stat(find_folder(root) / STAMP).st_mtime  # noqa: PTH116 - as elsewhere
    except OSError:
        return 0.0


def are_prices_due(root: Root) -> bool:
    """Whether that was so long ago that nobody should wait any longer."""
    return not 0 <= time.time() - find_priced_at(root) < SHOWN_S


def have_prices_waited(root: Root) -> bool:
    """Whether requests wait, and have waited for long."""
    return (find_folder(root) / WAITING).exists() and are_prices_due(root)


# Records that are not read
#
# A file beside the note of what was read says since when a session's records are read on as they
# have grown. It is there for a fraction of a second each time, and stays if that fails.

LATE_S = 5.0
"""Reading takes a second at most, and more on a busy machine; later than that, it fails."""
OTHERS_S = 15.0
"""After so many seconds the lag also holds other sessions that share a limit."""
SUFFIX = ".behind"
FAULTS = {
    RecordFault.MISSING: "the record of its conversation is gone",
    RecordFault.SILENT: "it is at work, and nothing is added to its record",
}


def check_sight(session: Session, *, allows_unknown: bool) -> None:
    """Check that it is known what the session uses just now.

    Raises:
        BlindError: it is not known.
        StateError: it cannot be noted that it is known again.

    """
    if unread := tell_unread(session.profile):
        if not allows_unknown:
            raise BlindError(unread, 0.0)
        return
    if not allows_unknown and (fault := find_fault(session)):
        raise BlindError(f"what {session.address} uses is not known: {FAULTS[fault]}", 0.0)
    now = time.time()
    if (late_s := measure_lag(session, now)) >= LATE_S:
        raise BlindError(_tell(session.address, late_s), now - late_s)


def tell_unread(profile: Profile) -> str:
    """Why nobody ever knows what an agent CLI uses, '' if its records can be read."""
    if find_reader(profile.spending):
        return ""
    return f"what '{profile.name}' uses is in no record that can be read"


def note_reading(session: Session, now: float) -> None:
    """Note that what the records have more is about to be read, unless that was noted before."""
    mark = find_behind(session)
    since = _read_number(read_harmless(mark, 40))
    if since is None or since > now:  # the clock was set back
        # The first session of a state root is looked at before it is read.
        ensure_private_dir(mark.parent)
        write_atomic(mark, f"{now:.6f}\n")


def measure_lag(session: Session, now: float) -> float:
    """For how long the session's records have been read in vain, in seconds."""
    mark = find_behind(session)
    if not os.path.lexists(mark):
        return 0.0
    if not has_grown(session):
        discard(mark)
        return 0.0
    # Records that grow all the time always have more; what was read up to then is noted.
    since = max(_read_number(read_harmless(mark, 40)) or now, find_read_at(session))
    return max(0.0, now - since)


def find_behind(session: Session) -> Path:
    """Find where it says since when."""
    return find_note(session).with_suffix(SUFFIX)


def find_others(root: Root, but_for: str) -> str:
    """Why nobody knows what some other session uses, '' if all is known."""
    return next((_tell(name, late_s) for name, late_s in list_lags(root) if name != but_for), "")


def list_lags(root: Root) -> Iterator[tuple[str, float]]:
    """The sessions whose records are read too late, and for how many seconds they were not."""
    now, folder = time.time(), find_folder(root)
    for name in _list_stems(root, SUFFIX):
        since = _read_number(read_harmless(folder / f"{name}{SUFFIX}", 40))
        if since is None or 0 <= now - since < OTHERS_S:
            continue
        if root.session(name).identity.exists():
            yield name, max(OTHERS_S, now - since)


def count_followed(root: Root) -> int:
    """Count the sessions that are read."""
    return len(_list_stems(root, ".read"))


def _list_stems(root: Root, suffix: str) -> list[str]:
    names = list_names(find_folder(root))
    return [name.removesuffix(suffix) for name in names if name.endswith(suffix)]


def ask_again(session: Session) -> None:
    """Have the session followed once more by its next pass, though it has not grown."""
    discard(find_note(session))


def _tell(name: str, late_s: float) -> str:
    return f"what {name} uses was not read for {late_s:.0f} s"
