"""Repairs the private directory: names of the wrong kind, and files that we cannot read.

Only this user can have caused that: by a backup that links files, a script, a slip. The wrong file
is renamed to a name that sm does not read, and the journal says so. The missing file is made again,
as after any loss. Damaged content is the subject of `damage`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sm.base.errors import StateError
from sm.store import events, journal
from sm.store.fifo import ensure_fifo
from sm.store.files import set_aside, write_atomic
from sm.store.paths import (
    PRIVATE,
    QUEUE,
    EntryKind,
    Folder,
    Layout,
    ProjectDir,
    Root,
    SessionDir,
    find_journal,
    layout,
)

IS = {
    EntryKind.FILE: stat.S_ISREG,
    EntryKind.DIRECTORY: stat.S_ISDIR,
    EntryKind.FIFO: stat.S_ISFIFO,
}
NEEDED = {EntryKind.FILE: 0o600, EntryKind.DIRECTORY: 0o700, EntryKind.FIFO: 0o600}
"""The permissions that we need."""


def repair(root: Root, *directories: SessionDir | ProjectDir) -> None:
    """Repair the private directory, and the directories of these sessions and projects.

    What cannot be repaired now stays. The code that needs it reports it.
    """
    _repair(root.private, PRIVATE, root.journal, "")
    for directory in directories:
        path = directory.path
        name = path.name if isinstance(directory, SessionDir) else ""
        _repair(path.parent, {path.name: EntryKind.DIRECTORY}, root.journal, name)
        _repair(path, layout(type(directory)), root.journal, name)
        if isinstance(directory, SessionDir):
            _repair(directory.queue, QUEUE, root.journal, name)


def repair_folder(folder: Folder) -> None:
    """Repair what a plugin keeps in a folder of the private directory.

    What cannot be repaired now stays. The code that needs it reports it.
    """
    if story := find_journal(folder.path / "any"):
        _repair(folder.path, layout(type(folder)), *story)


def _repair(folder: Path, kinds: Layout, story: Path, session: str) -> None:
    with contextlib.suppress(OSError, StateError):
        if not any(_wrong(folder, kinds)):
            return
        with _alone(folder):
            told = [_put_right(*each) for each in list(_wrong(folder, kinds))]
        for what in filter(None, told):  # the journal itself may have been among them
            journal.record(story, events.Problem(session=session, text=what))


def _wrong(folder: Path, kinds: Layout) -> Iterator[tuple[Path, EntryKind, str]]:
    """Yield each name of the wrong kind, and what is wrong with it."""
    # Most names of a session's directory have no file yet: one listing costs less than to ask
    # for each. Beside a single one there may be thousands.
    there = kinds if len(kinds) == 1 else frozenset(os.listdir(folder))  # noqa: PTH208
    for name, kind in kinds.items():
        if name not in there:
            continue
        path = f"{folder}/{name}"
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            continue
        if what := _fault(found, kind):
            yield Path(path), kind, what


def _fault(found: os.stat_result, kind: EntryKind) -> str:
    if not IS[kind](found.st_mode):
        return f"was no {kind}"
    if found.st_uid != os.geteuid():
        return "was not owned by you"
    mode = stat.S_IMODE(found.st_mode)
    is_open = kind is EntryKind.DIRECTORY and mode & 0o077
    if mode & NEEDED[kind] != NEEDED[kind] or is_open:
        return f"had mode {mode:03o}"
    return "had another name" if kind is EntryKind.FILE and found.st_nlink > 1 else ""


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process repair at a time, so that no process moves away another's new file."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _put_right(path: Path, kind: EntryKind, what: str) -> str:
    """Mend what is wrong; return what was done, '' if it is not possible now."""
    with contextlib.suppress(OSError, StateError):
        return f"'{path}' {what}: {_mend(path, kind, path.lstat())}"
    return ""


def _mend(path: Path, kind: EntryKind, found: os.stat_result) -> str:
    """Make `path` usable, or make room for it; return what was done."""
    if not IS[kind](found.st_mode) or found.st_uid != os.geteuid():
        aside = set_aside(path)
        _make(path, kind)
        return f"put aside as '{aside.name}'"
    path.chmod(NEEDED[kind])
    if found.st_nlink > 1 and kind is EntryKind.FILE:
        _separate(path)
        return "it is a copy of its own now"
    return f"it has mode {NEEDED[kind]:o} now"


def _separate(path: Path) -> None:
    """Make a file of its own for this name; fails while a process holds the old one as a lock."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        data, found = file.read(), os.fstat(file.fileno())
        write_atomic(path, data, mtime_ns=found.st_mtime_ns, limit=len(data))


def _make(path: Path, kind: EntryKind) -> None:
    """Make what hooks and monitors cannot make themselves."""
    if kind is EntryKind.DIRECTORY:
        path.mkdir(mode=0o700)
    elif kind is EntryKind.FIFO:
        ensure_fifo(path)
