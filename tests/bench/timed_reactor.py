"""Stands in for the interpreter of a monitor: serves the real passes and notes what took how long.

Usage: timed_reactor.py LOG react-server
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sm.__main__ import run
from sm.cli import passes
from sm.issues.act import planner, steps
from sm.passes import server

log = Path(sys.argv[1])
moments: dict[str, list[tuple[float, float]]] = {}


def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function; when it began and ended goes into `moments`."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        began = time.time()
        try:
            return function(*args, **kwargs)
        finally:
            moments.setdefault(name, []).append((began, time.time()))

    return wrapper


def react(*args: Any) -> None:
    """A pass in its fork: note when the monitor has asked for it, and when it began."""
    began = time.time()
    original(*args)
    entry = {"called": moments["_read"][-1][1], "began": began, "moments": moments}
    with log.open("a") as lines:
        lines.write(json.dumps(entry) + "\n")


original = passes.react
setattr(passes, "react", react)  # noqa: B010 - it notes a moment more
for module, name in ((planner, "observe"), (planner, "compose"), (steps, "perform")):
    setattr(module, name, timed(name, getattr(module, name)))
setattr(server.PassServer, "_read", timed("_read", server.PassServer._read))  # noqa: B010
sys.exit(run(sys.argv[2:]))
