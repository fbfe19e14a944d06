"""Reads what the agent's terminal shows, and what it showed, from the file that tmux writes."""

from __future__ import annotations

import os
from pathlib import Path

from sm.adapters.tmux import TmuxError
from sm.base.errors import SmError, StateError, TemporaryError
from sm.base.text import strip_ansi
from sm.sessions import agent
from sm.sessions.session import Session
from sm.store.files import open_guarded

READ_BYTES = 1024 * 1024
LOOKED_AT = 64 * 1024
"""Bytes from the end. A screen of a busy terminal program has a few kilobytes."""
DRAW_S = 5.0


def capture(session: Session) -> str:
    """Return its screen, with escape sequences; '' without one, or if tmux does not answer."""
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
