"""`sm news`: called by `dev-poll --loop`."""

from __future__ import annotations

import click

from sm.cli import passes
from sm.cli.invocation import Invocation


@click.command("news", help="Tell what the journal has behind a position.")
@click.argument("words", metavar="JOURNAL POSITION [PROJECT]...", nargs=-1, required=True)
@click.pass_context
def command(click_context: click.Context, words: tuple[str, ...]) -> None:
    """A line for each event that people wait for; the last line is where the journal ends."""
    passes.news(click_context.ensure_object(Invocation), list(words))
