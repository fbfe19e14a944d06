"""FIFOs, by which a process wakes another one that may be gone, or not there yet."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from enum import StrEnum
from pathlib import Path

from sm.base.errors import StateError
from sm.store.files import discard


class WakeUp(StrEnum):
    """What became of a line for the reader of a FIFO."""

    HEARD = "heard"
    FULL = "full"
    """Not written: the reader has many lines to read already."""
    UNHEARD = "unheard"
    """Nobody has the FIFO open."""
    ABSENT = "absent"
    """There is no FIFO of ours."""


def wake_reader(path: Path, line: bytes = b"\n") -> WakeUp:
    """Write a line into a FIFO whole or not at all, without waiting for a reader.

    Write what the reader should find before. Who must not lose a wake-up looks once more by itself:
    the reader as it begins to listen, or the writer that got another answer than HEARD.
    """
    try:
        fd = open_fifo(path, os.O_WRONLY)
    except OSError as error:
        return WakeUp.UNHEARD if error.errno == errno.ENXIO else WakeUp.ABSENT
    try:
        os.write(fd, line)
    except BlockingIOError:
        return WakeUp.FULL
    except OSError:
        return WakeUp.UNHEARD
    finally:
        os.close(fd)
    return WakeUp.HEARD


def open_fifo(path: Path, how: int) -> int:
    """Open a FIFO of ours without waiting; `how` is O_RDONLY, O_WRONLY or O_RDWR.

    Raises:
        OSError: there is none, or (ENXIO) nobody reads what we would write.

    """
    fd = os.open(path, how | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not _is_own_fifo(os.fstat(fd)):
        os.close(fd)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
    return fd


def ensure_fifo(path: Path) -> Path:
    """Make a FIFO (0600) where there is none. Returns `path`.

    Raises:
        StateError: it cannot be made, or something else is in its place.

    """
    try:
        with contextlib.suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        if _is_own_fifo(path.lstat()):
            return path
    except OSError as error:
        raise StateError(f"cannot make '{path}': {os.strerror(error.errno or 0)}") from error
    raise StateError(f"'{path}' is not a FIFO of yours: remove it")


def listen_anew(path: Path) -> int:
    """Make a FIFO in the place of an earlier one, and open it both ways: it never comes to its end.

    Raises:
        StateError: it cannot be made.

    """
    discard(path)
    try:
        return open_fifo(ensure_fifo(path), os.O_RDWR)
    except OSError as error:
        raise StateError(f"cannot open '{path}': {os.strerror(error.errno or 0)}") from error


def _is_own_fifo(found: os.stat_result) -> bool:
    return stat.S_ISFIFO(found.st_mode) and found.st_uid == os.geteuid()
