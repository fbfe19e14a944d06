"""`sm react-server`: the server of passes, which the monitor starts."""

from __future__ import annotations

import click

from sm.cli import passes
from sm.cli.invocation import Invocation


@click.command("react-server", help="React to what has happened, whenever a monitor asks for it.")
@click.argument("words", metavar="[SESSION]", nargs=-1)
@click.pass_context
def command(click_context: click.Context, words: tuple[str, ...]) -> None:
    """Make a pass for each request."""
    passes.serve_passes(click_context.ensure_object(Invocation), list(words))
