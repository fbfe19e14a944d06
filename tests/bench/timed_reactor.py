"""Stands in for the interpreter of a monitor: runs the real reactor and notes what took how long.

Usage: timed_reactor.py LOG EPOCHSECONDS react PROJECT ISSUE
The second argument is the moment at which the monitor started us, before Python was.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

log, called_at = Path(sys.argv[1]), float(sys.argv[2])
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


def main() -> None:
    """As `sm react PROJECT ISSUE`."""
    from sm.__main__ import run
    from sm.workflow import reactor

    for name in ("observe", "compose", "perform"):
        setattr(reactor, name, timed(name, getattr(reactor, name)))
    began = time.time()
    code = run(sys.argv[3:])
    entry = {"called": called_at, "began": began, "moments": moments}
    with log.open("a") as lines:
        lines.write(json.dumps(entry) + "\n")
    sys.exit(code)


main()
