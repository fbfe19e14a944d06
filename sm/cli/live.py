"""Output that goes on until Ctrl-C: a table drawn again every second, lines as they come."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sm.base.errors import UsageError
from sm.base.output import console

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


def pause_for_reader(seconds: float) -> None:
    """Pause between two looks for something to print.

    Raises:
        BrokenPipeError: the reader of the output has gone. With `| head`, it would not be missed
            before the next line otherwise.

    """
    gone = select.poll()
    gone.register(sys.stdout.fileno(), 0)
    if gone.poll(seconds * 1000):
        raise BrokenPipeError
