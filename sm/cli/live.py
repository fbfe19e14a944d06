"""A table that is drawn anew every second, until Ctrl-C."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sm.errors import UsageError
from sm.output import console

if TYPE_CHECKING:
    from rich.console import RenderableType

REFRESH_S = 1.0


def show_live(verb: str, draw: Callable[[int, int], RenderableType], *, as_json: bool) -> None:
    """Show what `draw` makes for a terminal of that width and height, again and again.

    Raises:
        UsageError: this is no terminal, or JSON is wanted.

    """
    from rich.live import Live

    if as_json or not sys.stdout.isatty():
        raise UsageError(f"--watch is for a terminal: leave --json and pipes to plain 'sm {verb}'")
    terminal = console()
    try:
        with Live(console=terminal, screen=True, auto_refresh=False) as live:
            while True:
                live.update(draw(terminal.width, terminal.height), refresh=True)
                time.sleep(REFRESH_S)
    except KeyboardInterrupt:
        return  # the way to end it, so no error
