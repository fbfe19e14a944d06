"""Crash points: places where a test can have this very process killed, as a real crash would.

`SM_CRASH_AT=NAME` kills at the point of that name; `SM_CRASH_ONCE=FILE` does so a single time,
remembered by creating FILE. Without the variable a point costs one dictionary look-up.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path


def crash_point(name: str) -> None:
    """Die here by SIGKILL if the environment asks for it."""
    if os.environ.get("SM_CRASH_AT") != name:
        return
    if once := os.environ.get("SM_CRASH_ONCE"):
        try:
            Path(once).open("x").close()
        except FileExistsError:
            return
    os.kill(os.getpid(), signal.SIGKILL)
