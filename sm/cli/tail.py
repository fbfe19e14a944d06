"""`sm tail`: the last lines of a session's screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sm.base.output import say, say_text
from sm.cli.arguments import target_argument

if TYPE_CHECKING:
    from sm.sessions.session import AnySession


@click.command("tail")
@target_argument
@click.option(
    "--lines",
    "-n",
    metavar="LINES",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many lines, counted from the end.",
)
def command(session: AnySession, lines: int) -> None:
    """Show the last lines of TARGET's terminal; if it has ended, what it said last."""
    from sm.views.logs import read_screen_lines

    if text := read_screen_lines(session, lines):
        say_text(text)
    else:
        say("nothing to see", err=True)
