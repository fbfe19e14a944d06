"""Keeps the terminal logs of ended sessions for a while, to show why a session has failed.

A log is moved unchanged, and named for its session and the moment. Its time is the session's end.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sm.base.errors import StateError
from sm.store.files import discard, ensure_private_dir, open_guarded
from sm.store.paths import Root

if TYPE_CHECKING:
    from sm.config.schema import Logs

MEGABYTE = 1_000_000


def keep(root: Root, session: str, log: Path, logs: Logs) -> None:
    """Move a session's terminal log to the kept ones, then remove what is too much there.

    A log that is not ours, or cannot be moved, stays where it is.
    """
    if logs.keep_s and logs.megabytes:
        with contextlib.suppress(OSError, StateError):
            _move(log, root.logs, session)
    prune(root, logs)


def _move(log: Path, folder: Path, name: str) -> None:
    with open_guarded(log, os.O_RDONLY) as fd:
        if not os.fstat(fd).st_size:
            return
        os.utime(fd)
    ensure_private_dir(folder)
    log.rename(folder / f"{name}.{time.time_ns()}.log")


def list_kept(root: Root, session: str) -> list[Path]:
    """Return the logs of the sessions that had this name, oldest first."""
    return [path for _, path in sorted(_logs(root.logs, f"{session}.*.log"))]


def prune(root: Root, logs: Logs) -> None:
    """Remove the logs that are too old, and the oldest ones if all together are too large.

    However large, the last log stays: a person most likely looks for that one.
    """
    oldest, room = time.time() - logs.keep_s, logs.megabytes * MEGABYTE
    for number, (ended_at, path) in enumerate(sorted(_logs(root.logs, "*.log"), reverse=True)):
        with contextlib.suppress(FileNotFoundError):
            room -= path.lstat().st_size
            too_large = room < 0 and (number > 0 or not logs.megabytes)
            if too_large or ended_at < oldest:
                discard(path)


def _logs(folder: Path, pattern: str) -> Iterator[tuple[float, Path]]:
    """Yield each log of the folder, with the time at which its session ended."""
    for path in folder.glob(pattern):
        with contextlib.suppress(FileNotFoundError):  # another process has just removed it
            yield path.lstat().st_mtime, path
