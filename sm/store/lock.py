"""Locks that the kernel releases when their holder dies, however it dies (flock)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from sm.errors import TemporaryError
from sm.store.files import open_guarded

RETRY_S = 0.02
ASKED_S = 1.0
"""So long whoever takes a lock waits for those that only ask for its holder."""
ASKED_RETRY_S = 0.001


class HeldError(TemporaryError):
    """Somebody else holds the lock."""


@contextlib.contextmanager
def hold(path: Path, *, timeout_s: float = 30.0) -> Iterator[None]:
    """Hold the lock file `path`, waiting up to `timeout_s` seconds for it.

    Raises:
        HeldError: somebody else held it all that time.

    """
    with open_guarded(path, os.O_RDWR | os.O_CREAT) as fd:
        deadline = time.monotonic() + timeout_s
        while not _try(fd, fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                raise HeldError(f"'{path}' was locked for {timeout_s:g} s: try again")
            time.sleep(RETRY_S)
        yield


@contextlib.contextmanager
def try_hold(path: Path) -> Iterator[bool]:
    """Hold the lock file `path` if nobody does; yields whether it is held now."""
    with try_hold_fd(path) as fd:
        yield fd is not None


@contextlib.contextmanager
def try_hold_fd(path: Path) -> Iterator[int | None]:
    """As `try_hold`, but yields the descriptor: a child that inherits it goes on holding."""
    with open_guarded(path, os.O_RDWR | os.O_CREAT) as fd:
        yield fd if _take(fd) else None


@contextlib.contextmanager
def try_hold_folder(path: Path) -> Iterator[bool]:
    """Hold a folder that is not ours to put a lock file into; yields whether it is held now.

    False also where it cannot be locked, as on some file systems of other machines.
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
    """Whether some process holds `path`; creates nothing.

    Asking shares the lock for a moment, so that others who ask are told the same, and who takes it
    can tell them from a holder.
    """
    try:
        with open_guarded(path, os.O_RDWR) as fd:
            return not _try(fd, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def _take(fd: int) -> bool:
    """Whether it could be taken at once, but for those who only ask."""
    deadline = time.monotonic() + ASKED_S
    while not _try(fd, fcntl.LOCK_EX):
        if not _try(fd, fcntl.LOCK_SH) or time.monotonic() >= deadline:
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
