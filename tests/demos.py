"""bin/demo as a person starts it, and what is left of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.helpers import REPOSITORY

DEMO = REPOSITORY / "bin" / "demo"
PLACE = re.compile(r"making a small project in (\S+)/textkit")
END_S = 330.0


def start(*options: str, path: str = "") -> subprocess.Popen[str]:
    """Start it in a session of its own; `path` is its PATH, if that is another one."""
    return subprocess.Popen(
        [DEMO, "--plain", *options],
        env=os.environ | {"SM_PYTHON": sys.executable} | ({"PATH": path} if path else {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def list_processes(place: Path) -> list[str]:
    """The command lines of all that has the place in its environment."""
    found = []
    for process in Path("/proc").glob("[1-9]*"):
        try:
            if os.fsencode(place) in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def find_place(said: str) -> Path:
    """Its directory, by what it has said."""
    found = PLACE.search(said)
    assert found, said
    return Path(found[1])
