"""Crash points: places where a test can kill this process, as a real crash would.

`SM_CRASH_AT=NAME[,NAME]…` kills at the points with these names. With `SM_CRASH_ONCE=FOLDER` each of
them kills only once; a file of its name in the folder remembers that. Without the variable a point
costs one look into a dictionary.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path


def crash_point(name: str) -> None:
    """Die here by SIGKILL if the environment asks for it."""
    deadly = os.environ.get("SM_CRASH_AT")
    if not deadly or name not in deadly.split(","):
        return
    if once := os.environ.get("SM_CRASH_ONCE"):
        Path(once).mkdir(exist_ok=True)
        try:
            (Path(once) / name).open("x").close()
        except FileExistsError:
            return
    os.kill(os.getpid(), signal.SIGKILL)
