"""The phase file of a session: made empty by us, written by the agent, read with care."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from sm.errors import StateError
from sm.phase import PhaseWrite, parse
from sm.store.files import create_exclusive, open_guarded
from sm.store.paths import Root

READ_LIMIT = 64 * 1024
"""Bytes; a sentinel and its reason are far shorter, and the file can be of any size."""

STEADY_TRIES = 5

SLACK_S = 1.0
"""So far apart may be the clocks of programs and of file systems."""

OTHERS_MAY_WRITE = 0o022


def create(root: Root, project: str, issue: int) -> Path:
    """Make an empty phase file (0600), or keep the one that is there; returns its path.

    Raises:
        StateError: something else has that name.

    """
    path = root.phase(project, issue)
    if not create_exclusive(path):
        read(root, project, issue)
    return path


def read(root: Root, project: str, issue: int) -> PhaseWrite | None:
    """What the agent wrote last; None where there is no such file.

    Raises:
        StateError: it is a link, no plain file, another user's, or open to others' writing.

    """
    path = root.phase(project, issue)
    try:
        with open_guarded(path, os.O_RDONLY) as fd:
            content, found = _steady(fd)
    except FileNotFoundError:
        return None
    if found.st_mode & OTHERS_MAY_WRITE:
        raise StateError(f"'{path}' can be written by other users: run chmod go-w on it")
    return parse(content, mtime_ns=found.st_mtime_ns, inode=found.st_ino, size=found.st_size)


def correct_time(root: Root, project: str, issue: int, *, not_before: float) -> None:
    """Give a write the present time if its own cannot be true, so that timers can go by it.

    That is one before the session began (`not_before`, seconds since the epoch), as a copied
    file may have, or one in the future, as there is when the clock has been set back.
    """
    with (
        contextlib.suppress(FileNotFoundError, StateError),
        open_guarded(root.phase(project, issue), os.O_RDONLY) as fd,
    ):
        if not not_before - SLACK_S <= os.fstat(fd).st_mtime <= time.time() + SLACK_S:
            os.utime(fd)


def _steady(fd: int) -> tuple[bytes, os.stat_result]:
    """Content and stat of one and the same write: looked at again while the file changes."""
    for _ in range(STEADY_TRIES):
        before = os.fstat(fd)
        content = os.pread(fd, READ_LIMIT, 0)
        after = os.fstat(fd)
        if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
            break
    return content, after


def clear(root: Root, project: str, issue: int) -> None:
    """Remove the phase file, or the link that is in its place; a missing one is no error.

    Raises:
        StateError: it is a directory or may not be removed.

    """
    path = root.phase(project, issue)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StateError(f"cannot remove '{path}': {os.strerror(error.errno or 0)}") from error
