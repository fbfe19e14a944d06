"""`sm tail`: the last lines of a session's screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sm.base.output import say, say_text
from sm.cli.arguments import target_argument
from sm.cli.options import make_lines_option

if TYPE_CHECKING:
    from sm.sessions.session import AnySession


@click.command("tail")
@target_argument
@make_lines_option(20)
def command(session: AnySession, lines: int) -> None:
    """Show the last lines of TARGET's terminal; if it has ended, what it said last."""
    from sm.views.logs import read_screen_lines

    if text := read_screen_lines(session, lines):
        say_text(text)
    else:
        say("nothing to see", err=True)
