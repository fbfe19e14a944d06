"""Agent's terminal: what it shows, and what it showed, from the log that tmux writes.

The logs of ended sessions are kept for a while, to show why a session has failed. A kept log is
moved unchanged, and named for its session and the moment; its time is the session's end.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sm.base.errors import SmError, StateError, TemporaryError
from sm.base.text import strip_ansi
from sm.store.files import discard, ensure_private_dir, open_guarded
from sm.store.paths import Root

if TYPE_CHECKING:
    from sm.config.schema import Logs
    from sm.sessions.session import Session

READ_BYTES = 1024 * 1024
LOOKED_AT = 64 * 1024
"""Bytes from the end. A screen of a busy terminal program has a few kilobytes."""
DRAW_S = 5.0
MEGABYTE = 1_000_000


def capture(session: Session) -> str:
    """Return its screen, with escape sequences; '' without one, or if tmux does not answer."""
    from sm.adapters.tmux import TmuxError  # late: who only keeps a log needs no tmux
    from sm.sessions import agent

    known = agent.load(session.dir)
    try:
        return session.tmux.look(known.pane_id, escapes=True)[1] if known else ""
    except (TmuxError, TemporaryError):
        return ""


def read_tail(path: Path, lines: int) -> str:
    """Return the last `lines` lines that are not blank; may be empty.

    It does not read a file of another user.
    """
    try:
        with open_guarded(path, os.O_RDONLY) as fd:
            os.lseek(fd, max(0, os.fstat(fd).st_size - READ_BYTES), os.SEEK_SET)
            data = os.read(fd, READ_BYTES)
    except (FileNotFoundError, StateError):
        return ""
    return "\n".join([line for line in _draw(data) if line][-lines:])


def _draw(data: bytes) -> list[str]:
    """Return the lines as drawn; if that takes too long, without control sequences."""
    from sm.adapters.emulator import show

    try:
        return show(data, looked_at_from=max(0, len(data) - LOOKED_AT), within_s=DRAW_S)
    except SmError:
        text = strip_ansi(data.decode("utf-8", "replace"))
        return [line.rstrip() for line in text.splitlines()]


def keep_log(root: Root, session: str, log: Path, logs: Logs) -> None:
    """Move a session's terminal log to the kept ones, then remove what is too much there.

    A log that is not ours, or cannot be moved, stays where it is.
    """
    if logs.keep_s and logs.megabytes:
        with contextlib.suppress(OSError, StateError):
            _move(log, root.logs, session)
    prune_logs(root, logs)


def _move(log: Path, folder: Path, name: str) -> None:
    with open_guarded(log, os.O_RDONLY) as fd:
        if not os.fstat(fd).st_size:
            return
        os.utime(fd)
    ensure_private_dir(folder)
    log.rename(folder / f"{name}.{time.time_ns()}.log")


def list_kept_logs(root: Root, session: str) -> list[Path]:
    """Return the logs of the sessions that had this name, oldest first."""
    return [path for _, path in sorted(_logs(root.logs, f"{session}.*.log"))]


def prune_logs(root: Root, logs: Logs) -> None:
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
