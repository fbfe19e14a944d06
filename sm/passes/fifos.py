"""FIFOs between the server of passes and monitors, which may be gone at any moment."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

STDIN, STDOUT, STDERR = range(3)


def open_fifo(path: Path, how: int) -> int | None:
    """Open one of our FIFOs without waiting; None if there is none, or nobody at its other end."""
    try:
        fd = os.open(path, how | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    found = os.fstat(fd)
    if stat.S_ISFIFO(found.st_mode) and found.st_uid == os.geteuid():
        return fd
    os.close(fd)
    return None


def say(answer: int, line: str) -> None:
    """Write a line, if anybody still reads."""
    with contextlib.suppress(OSError):  # the monitor was killed, or has long stopped reading
        os.write(answer, f"{line}\n".encode())


def close(*ends: int | None) -> None:
    """Close the FIFOs of a pass that are open."""
    for end in ends:
        if end is not None:
            with contextlib.suppress(OSError):
                os.close(end)
