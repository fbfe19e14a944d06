"""Locks that the kernel releases when their holder dies, in whatever way (flock)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from sm.base.clock import Deadline
from sm.base.errors import TemporaryError
from sm.store.files import open_guarded

RETRY_S = (0.02, 0.1)
"""Shortest and longest pause between two tries; in between a twentieth of what was waited."""
ASKED_S = 1.0
"""Time that a process that takes a lock waits for those that only ask who holds it, in seconds."""
ASKED_RETRY_S = 0.001


class HeldError(TemporaryError):
    """Another process holds the lock."""


@contextlib.contextmanager
def hold(path: Path, *, timeout_s: float = 30.0) -> Iterator[None]:
    """Hold the lock file `path`; wait up to `timeout_s` seconds for it.

    Raises:
        HeldError: another process held it all that time.

    """
    with open_guarded(path, os.O_RDWR | os.O_CREAT) as fd:
        if not _await(fd, timeout_s):
            raise HeldError(f"'{path}' was locked for {timeout_s:g} s: try again")
        yield


@contextlib.contextmanager
def try_hold(path: Path) -> Iterator[bool]:
    """Hold the lock file `path` if it is free; yields whether we hold it now."""
    with try_hold_fd(path) as fd:
        yield fd is not None


@contextlib.contextmanager
def try_hold_fd(path: Path) -> Iterator[int | None]:
    """Hold the lock if it is free, and yield its descriptor: a child that inherits it keeps it."""
    with open_guarded(path, os.O_RDWR | os.O_CREAT) as fd:
        yield fd if _take(fd) else None


@contextlib.contextmanager
def try_hold_folder(path: Path) -> Iterator[bool]:
    """Lock a folder in which we may not make a lock file; yields whether we hold it now.

    Yields False, too, if the folder cannot be locked, as on some network file systems.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        yield _try_any(fd)
    finally:
        os.close(fd)


def is_held(path: Path) -> bool:
    """Say whether a process holds `path`; creates nothing.

    The question takes a shared lock for a moment. So others who ask get the same answer, and a
    process that takes the lock can tell the question from a holder.
    """
    try:
        with open_guarded(path, os.O_RDWR) as fd:
            return not _try(fd, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def _await(fd: int, timeout_s: float) -> bool:
    """Take the lock within `timeout_s` seconds; say whether that worked.

    The kernel would wait without end. The longer we have waited the more others do so, too, and
    their tries would take the time from the holder that it needs to come to its end.
    """
    shortest, longest = RETRY_S
    began = time.monotonic()
    while not _try(fd, fcntl.LOCK_EX):
        waited = time.monotonic() - began
        if waited >= timeout_s:
            return False
        time.sleep(min(max(shortest, waited / 20), longest))
    return True


def _take(fd: int) -> bool:
    """Take the lock if only processes that ask have it; say whether that worked."""
    deadline = Deadline(ASKED_S)
    while not _try(fd, fcntl.LOCK_EX):
        if not _try(fd, fcntl.LOCK_SH) or deadline.is_over:
            return False
        fcntl.flock(fd, fcntl.LOCK_UN)
        time.sleep(ASKED_RETRY_S)
    return True


def _try_any(fd: int) -> bool:
    try:
        return _try(fd, fcntl.LOCK_EX)
    except OSError:
        return False


def _try(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
