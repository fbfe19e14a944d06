"""`sm react`: called by the monitor."""

from __future__ import annotations

import click

from sm.cli import passes
from sm.cli.invocation import Invocation


@click.command("react", help="React to what has happened in one session.")
@click.argument("words", metavar="SESSION | PROJECT ISSUE", nargs=-1, required=True)
@click.pass_context
def command(click_context: click.Context, words: tuple[str, ...]) -> None:
    """One pass of the reactor; a session that is gone is no error."""
    passes.react(click_context.ensure_object(Invocation), list(words))
