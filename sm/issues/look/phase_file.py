"""Phase file of a session: sm makes it empty, the agent writes it, sm reads it with care."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from sm.base.errors import StateError
from sm.base.issue_id import IssueId
from sm.base.phase import PhaseWrite, parse
from sm.store.files import create_exclusive, open_guarded
from sm.store.paths import Root
from sm.store.root_check import may_others_write

READ_LIMIT = 64 * 1024
"""Bytes that are read. A phase and its reason are far shorter, but the file can have any size."""

STEADY_TRIES = 5

SLACK_S = 1.0
"""Difference that clocks of programs and file systems may have, in seconds."""


def create(root: Root, project: str, issue: IssueId) -> Path:
    """Make an empty phase file (0600), or keep the existing one; return its path.

    Raises:
        StateError: something else has its place.

    """
    path = root.phase(project, issue)
    if not create_exclusive(path):
        read(root, project, issue)
    return path


def read(root: Root, project: str, issue: IssueId) -> PhaseWrite | None:
    """Return what the agent wrote last; None if there is no such file.

    Raises:
        StateError: it is a link, no plain file, another user's, or writable for others.

    """
    path = root.phase(project, issue)
    try:
        with open_guarded(path, os.O_RDONLY) as fd:
            return _read(path, fd)
    except FileNotFoundError:
        return None


def read_corrected(
    root: Root, project: str, issue: IssueId, *, not_before: float, is_known: Callable[[str], bool]
) -> PhaseWrite | None:
    """Read as `read` does, but first give a write of an impossible time the present one.

    Timers start at that time. Impossible is a time before the session began (`not_before`, seconds
    since 1970), such as a copied file's, or a time in the future, as after a clock was set back.
    After that, the session's own beginning may be in the future, too, and says nothing.

    A write with another time is another write, so one that `is_known` by its id stays as it is.

    Both are done on one open file. If the file were corrected earlier, a write in between would be
    read with its impossible time, and be known by it as soon as it is answered.
    """
    path = root.phase(project, issue)
    try:
        with open_guarded(path, os.O_RDONLY) as fd:
            write = _read(path, fd)
            if _is_possible(write.at, not_before) or is_known(write.id):
                return write
            os.utime(fd)
            return _read(path, fd)
    except FileNotFoundError:
        return None


def _is_possible(at: float, not_before: float) -> bool:
    now = time.time()
    earliest = not_before - SLACK_S if not_before <= now else 0.0
    return earliest <= at <= now + SLACK_S


def _read(path: Path, fd: int) -> PhaseWrite:
    content, found = _steady(fd)
    if may_others_write(found):
        raise StateError(f"'{path}' can be written by other users: run chmod go-w on it")
    return parse(content, mtime_ns=found.st_mtime_ns, inode=found.st_ino, size=found.st_size)


def _steady(fd: int) -> tuple[bytes, os.stat_result]:
    """Read content and stat of the same write: look again while the file changes."""
    for _ in range(STEADY_TRIES):
        before = os.fstat(fd)
        content = os.pread(fd, READ_LIMIT, 0)
        after = os.fstat(fd)
        if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
            break
    return content, after
