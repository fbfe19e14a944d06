"""The phase file of a session: sm makes it empty, the agent writes it, sm reads it with care."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from sm.errors import StateError
from sm.phase import PhaseWrite, parse
from sm.store.files import create_exclusive, open_guarded
from sm.store.paths import Root

READ_LIMIT = 64 * 1024
"""Bytes. A phase and its reason are far shorter, but the file can have any size."""

STEADY_TRIES = 5

SLACK_S = 1.0
"""How far the clocks of programs and file systems may differ."""

OTHERS_MAY_WRITE = 0o022


def create(root: Root, project: str, issue: int) -> Path:
    """Make an empty phase file (0600), or keep the existing one; return its path.

    Raises:
        StateError: something else has its name.

    """
    path = root.phase(project, issue)
    if not create_exclusive(path):
        read(root, project, issue)
    return path


def read(root: Root, project: str, issue: int) -> PhaseWrite | None:
    """Return what the agent wrote last; None if there is no such file.

    Raises:
        StateError: it is a link, no plain file, another user's, or writable for others.

    """
    path = root.phase(project, issue)
    try:
        with open_guarded(path, os.O_RDONLY) as fd:
            content, found = _steady(fd)
    except FileNotFoundError:
        return None
    if found.st_mode & OTHERS_MAY_WRITE:
        raise StateError(f"'{path}' can be written by other users: run chmod go-w on it")
    return _parse(content, found)


def correct_time(
    root: Root, project: str, issue: int, *, not_before: float, is_known: Callable[[str], bool]
) -> None:
    """Give a write the present time if its own time is impossible, for the timers.

    Impossible is a time before the session began (`not_before`, seconds since 1970), such as a
    copied file's, or a time in the future, as after a clock was set back. After that, the session's
    own beginning may be in the future, too, and says nothing.

    With another time it is another write. So one that `is_known` by its id stays as it is.
    """
    now = time.time()
    earliest = not_before - SLACK_S if not_before <= now else 0.0
    with (
        contextlib.suppress(FileNotFoundError, StateError),
        open_guarded(root.phase(project, issue), os.O_RDONLY) as fd,
    ):
        if earliest <= os.fstat(fd).st_mtime <= now + SLACK_S:
            return
        if not is_known(_parse(*_steady(fd)).id):
            os.utime(fd)


def _parse(content: bytes, found: os.stat_result) -> PhaseWrite:
    return parse(content, mtime_ns=found.st_mtime_ns, inode=found.st_ino, size=found.st_size)


def _steady(fd: int) -> tuple[bytes, os.stat_result]:
    """Content and stat of one and the same write: looked at again while the file changes."""
    for _ in range(STEADY_TRIES):
        before = os.fstat(fd)
        content = os.pread(fd, READ_LIMIT, 0)
        after = os.fstat(fd)
        if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
            break
    return content, after
