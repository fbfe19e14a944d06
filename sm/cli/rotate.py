"""`sm rotate`: called by the agent's own hooks when its turn has ended."""

from __future__ import annotations

import click

from sm.cli import passes
from sm.cli.invocation import Invocation


@click.command("rotate", help="Carry on the replacement of a session's context.")
@click.argument("name", metavar="SESSION")
@click.pass_context
def command(click_context: click.Context, name: str) -> None:
    """Do what is due now; a session that is gone is no error."""
    passes.rotate(click_context.ensure_object(Invocation), [name])
