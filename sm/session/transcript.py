"""What the agent's terminal showed, as tmux copied it into a file."""

from __future__ import annotations

import os
from pathlib import Path

from sm.errors import StateError
from sm.store.files import open_guarded
from sm.text import strip_ansi

READ_BYTES = 64 * 1024
"""From the end; a screenful of a busy terminal program is a few kilobytes."""


def tail(path: Path, lines: int) -> str:
    """The last `lines` lines that are not blank, without control sequences; may be empty.

    What another user has put there is not read.
    """
    try:
        with open_guarded(path, os.O_RDONLY) as fd:
            os.lseek(fd, max(0, os.fstat(fd).st_size - READ_BYTES), os.SEEK_SET)
            text = os.read(fd, READ_BYTES).decode("utf-8", "replace")
    except (FileNotFoundError, StateError):
        return ""
    shown = [line.rstrip() for line in strip_ansi(text).splitlines()]
    return "\n".join([line for line in shown if line][-lines:])
