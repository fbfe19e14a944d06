"""Driving the shell half: real bash, and a stand-in for the core where only the call matters."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.helpers import HANG_S
from tests.helpers import REPOSITORY as REPOSITORY

BIN = REPOSITORY / "bin"


def bash(
    script: str, *args: str | Path, **environment: str | Path
) -> subprocess.CompletedProcess[str]:
    """Run a strict bash script that has sourced lib/agent-session.sh; `$1` … are `args`."""
    return subprocess.run(
        ["bash", "-c", strict(script), "script", *map(str, args)],
        env=os.environ | {name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )


def strict(script: str) -> str:
    """`script` as most people's scripts begin."""
    return f"set -euo pipefail\nsource '{REPOSITORY}/lib/agent-session.sh'\n{script}\n"


def stand_in(path: Path, body: str) -> Path:
    """An executable in the place of the interpreter: `$*` is `-Im sm VERB …`."""
    path.write_text(f"#!/usr/bin/env bash\n{body}\n")
    path.chmod(0o755)
    return path


def stand_in_server(path: Path, body: str) -> Path:
    """An executable in the place of `-Im sm react-server SESSION`; `body` is each of its passes."""
    return stand_in(path, f"while read -r; do (\n{body}\n) </dev/null >&2; echo $?; done")


def lines(path: Path) -> list[str]:
    """The lines of a file that may not be there yet."""
    return path.read_text().splitlines() if path.exists() else []
