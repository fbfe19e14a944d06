"""Files of a rotation: what the agent has asked for, the record, and what is held back.

`hold` is there as long as either of the others is, unless the record lets messages through. It is
all that the agent's hooks look at.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from pathlib import Path

from msgspec import Struct, structs

from sm.adapters.agent.profile import Profile
from sm.base.errors import SmError, StateError
from sm.base.text import normalise
from sm.context.rotation import MessageKey, RotationRecord
from sm.messages import queue
from sm.messages.queue import hold_back, read_passing_ids
from sm.sessions import agent_state, registry
from sm.sessions.session import Session
from sm.store import events, journal
from sm.store.failpoint import crash_point
from sm.store.files import (
    discard,
    follow_links,
    read_foreign,
    read_guarded,
    read_json,
    write_atomic,
    write_json,
)
from sm.store.paths import SessionDir

COPY_LIMIT = 1024 * 1024
"""Limit of the part of a document that is kept beside it, in bytes."""


class RotationRefusedError(SmError):
    """The agent's context cannot be replaced."""


class Handoff(Struct, frozen=True):
    """Handoff that an agent has asked for: `path` is absolute, `at` seconds since 1970.

    `context` is the agent's own id of the context that it was asked in, '' if it tells none.
    """

    path: str
    at: float
    context: str = ""


def schedule(session: Session, profile: Profile, path: Path) -> None:
    """Have the context replaced when the turn ends; an earlier wish is forgotten.

    Raises:
        RefusedError: the agent CLI has no terminal, or no command for it, or the path cannot be
            typed.
        StateError: it cannot be written down.

    """
    check(profile)
    if not is_typeable(path):
        shown = repr(str(path))[1:-1]
        raise RotationRefusedError(
            f"cannot hand off '{shown}': no agent can be told that name: rename it"
        )
    directory = session.dir
    context = agent_state.read(directory).context
    write_json(directory.handoff, Handoff(str(path), time.time(), context), durable=True)
    if not directory.hold.exists():
        hold_back(directory)
    registry.poke(directory)  # without hooks nothing else calls at the end of the turn


def find_document(file: Path) -> Path:
    """Return the file itself, behind any links. A link that takes its place later is not followed.

    Raises:
        RefusedError: there is no such file, or it cannot be read, or holds nothing.

    """
    path = Path(os.path.abspath(file))  # noqa: PTH100 - what the agent calls it, not where it leads
    if not _is_file(path):
        raise RotationRefusedError(f"File not found: {path}")
    if not os.access(path, os.R_OK):
        raise RotationRefusedError(f"cannot read '{path}': permission denied")
    itself = follow_links(path) if path.is_symlink() else path
    if not is_readable(itself):
        raise RotationRefusedError(f"cannot hand off '{path}': it is empty")
    return itself


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, a folder that may not be looked into
        return False


def is_typeable(path: Path) -> bool:
    """Whether an agent can be told the path as it is, in one line: UTF-8, nothing invisible."""
    told = f"{path}."  # white space at its end is in the middle of what is typed
    return normalise(told) == told and not ("\n" in told or "\t" in told)


def check(profile: Profile) -> None:
    """Refuse an agent CLI whose context cannot be replaced.

    Raises:
        RefusedError: it cannot.

    """
    if not profile.terminal:
        raise RotationRefusedError(f"sm handoff is not supported for {profile.name} sessions")
    if not profile.clear:
        raise RotationRefusedError(
            f"the profile '{profile.name}' has no command that clears the context: set its 'clear'"
        )


def is_wanted(directory: SessionDir) -> bool:
    """Whether a rotation is under way, asked for, or holds something back.

    A link that leads nowhere counts: the hooks take it for the file.
    """
    return any(map(os.path.lexists, (directory.hold, directory.rotation, directory.handoff)))


def read_wish(directory: SessionDir) -> Handoff | None:
    """Return the handoff that the agent has asked for, until it is taken up.

    Raises:
        StateError: the file is damaged.

    """
    return read_json(directory.handoff, Handoff)


def read_record(directory: SessionDir) -> RotationRecord | None:
    """Return the rotation under way.

    Raises:
        StateError: the file is damaged.

    """
    return read_json(directory.rotation, RotationRecord)


def write_record(directory: SessionDir, record: RotationRecord) -> None:
    """Write the record; `align` is to follow."""
    write_json(directory.rotation, record, durable=True)


def save(session: Session, record: RotationRecord) -> None:
    """Write the record, hold back what it holds back, take back messages of an earlier step."""
    write_record(session.dir, record)
    crash_point("rotate:saved")
    align(session.dir, record)
    withdraw(session.dir, record, but=record.key)


def align(directory: SessionDir, record: RotationRecord) -> None:
    """Let only the message of the record's step reach the agent, or all, as the record has it."""
    passing = (record.make_message_id(record.key),) if record.key else ()
    if not record.holds:
        release(directory)
    elif read_passing_ids(directory) != passing:
        hold_back(directory, passing)


def withdraw(directory: SessionDir, record: RotationRecord, but: MessageKey | None = None) -> None:
    """Take back the record's messages that still wait, except one."""
    for key in record.list_keys():
        if key != but:
            queue.withdraw(directory, record.make_message_id(key))


def note(session: Session, event: events.Rotation) -> None:
    """Tell of a step in the journal."""
    journal.record(session.root.journal, structs.replace(event, session=session.name))


def drop(directory: SessionDir) -> None:
    """Forget the record: it is over."""
    discard(directory.rotation)
    release(directory)


def forget_wish(directory: SessionDir, wish: Handoff | None = None) -> None:
    """Forget what the agent has asked for; but a wish newer than `wish` stays."""
    aside = directory.handoff.with_name(f".{directory.handoff.name}.taken")
    with contextlib.suppress(FileNotFoundError):
        directory.handoff.rename(aside)
        if wish is not None and _wish_in(aside) not in (wish, None):
            with contextlib.suppress(FileExistsError):  # a newer one still
                directory.handoff.hardlink_to(aside)
    discard(aside)


def _wish_in(path: Path) -> Handoff | None:
    with contextlib.suppress(StateError):
        return read_json(path, Handoff)
    return None


def release(directory: SessionDir) -> None:
    """Hand messages over again, unless the agent has just asked for another rotation."""
    if not directory.handoff.exists():
        discard(directory.hold)
    if directory.handoff.exists() and not directory.hold.exists():
        hold_back(directory)


def is_readable(path: Path) -> bool:
    """Whether the path is a plain file that holds something and can be read, and no link to one."""
    try:
        found = path.lstat()
        return stat.S_ISREG(found.st_mode) and found.st_size > 0 and os.access(path, os.R_OK)
    except (OSError, ValueError):
        return False


def keep(directory: SessionDir, path: Path) -> None:
    """Copy the document that the next context is to begin with.

    Raises:
        OSError: it cannot be read, or is no plain file, or is empty.
        StateError: the copy cannot be written.

    """
    text = read_foreign(path, COPY_LIMIT)
    if not text:
        raise OSError(f"'{path}' is no plain file, or empty")
    write_atomic(directory.next_document, text, durable=True)


def copy_document(session: Session, record: RotationRecord) -> RotationRecord | None:
    """Return the record once its document is copied; None if it cannot be read any more."""
    if record.kept:
        return record
    try:
        keep(session.dir, Path(record.document))
    except OSError:
        return None
    copied = structs.replace(record, kept=True)
    save(session, copied)
    return copied


def note_rotated(session: Session, record: RotationRecord) -> None:
    """Remember with which document the new context was begun, and its id once it is known."""
    context = agent_state.read(session.dir).context  # the clear was typed since the pass looked
    context = context if context != record.context else ""
    note_begun(session.dir, Path(record.document), context, kept=record.kept)


def note_begun(directory: SessionDir, path: Path, context: str, *, kept: bool = False) -> None:
    """Remember the document that the context, by the agent's own id, was begun with.

    Its copy takes the place of the last one, if one was `kept`. Safe to repeat.
    """
    last_one = read_last_document(directory)
    try:
        directory.next_document.replace(directory.document)
    except FileNotFoundError:
        if last_one != path and not kept:  # a kept copy is in its place already
            discard(directory.document)
    write_atomic(directory.last_handoff, f"{path}\n{context or '-'}\n")


def read_last_document(directory: SessionDir) -> Path | None:
    """Return the document that the last context was begun with; None also if damaged."""
    with contextlib.suppress(StateError):
        return load_last_document(directory)
    return None


def load_last_document(directory: SessionDir) -> Path | None:
    """Return the path of the last document, for a caller that has to know of damage.

    Raises:
        StateError: the file is damaged.

    """
    text = (read_guarded(directory.last_handoff) or b"").decode("utf-8", "surrogateescape")
    path = text.partition("\n")[0]
    return Path(path) if path else None
