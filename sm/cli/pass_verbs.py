"""The verbs of `sm.cli.passes` as click commands: for their help, and for calls with options."""

from __future__ import annotations

import click

from sm.cli import passes
from sm.cli.invocation import Invocation


@click.command("react", help="React to what has happened in one session.")
@click.argument("words", metavar="SESSION | PROJECT ISSUE", nargs=-1, required=True)
@click.pass_context
def react(click_context: click.Context, words: tuple[str, ...]) -> None:
    """Make one pass of the reactor; a session that is gone is no error."""
    passes.react(click_context.ensure_object(Invocation), list(words))


@click.command("react-server", help="React to what has happened, whenever a monitor asks for it.")
@click.argument("words", metavar="[SESSION]", nargs=-1)
@click.pass_context
def serve_passes(click_context: click.Context, words: tuple[str, ...]) -> None:
    """Make a pass for each request."""
    passes.serve_passes(click_context.ensure_object(Invocation), list(words))


@click.command("rotate", help="Carry on the replacement of a session's context.")
@click.argument("name", metavar="SESSION")
@click.pass_context
def rotate(click_context: click.Context, name: str) -> None:
    """Do what is due now; a session that is gone is no error."""
    passes.rotate(click_context.ensure_object(Invocation), [name])


@click.command("watch", help="Start the monitor of a session if it has none.")
@click.argument("name", metavar="SESSION")
@click.pass_context
def watch(click_context: click.Context, name: str) -> None:
    """Start the monitor, for a hook that found none; a session that is gone is no error."""
    passes.watch(click_context.ensure_object(Invocation), [name])


@click.command("news", help="Tell what the journal has behind a position.")
@click.argument("words", metavar="JOURNAL POSITION [PROJECT]...", nargs=-1, required=True)
@click.pass_context
def news(click_context: click.Context, words: tuple[str, ...]) -> None:
    """Print a line for each event that people wait for; the last line is where the journal ends."""
    passes.news(click_context.ensure_object(Invocation), list(words))
