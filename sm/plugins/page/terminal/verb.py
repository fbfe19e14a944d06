"""`sm terminal`: shows a session's terminal to the page of another machine, which calls it."""

from __future__ import annotations

import sys

import click

from sm.base.errors import UsageError
from sm.base.issue_id import IssueId
from sm.cli.invocation import find_project
from sm.cli.options import load_config

STDIN, STDOUT = range(2)


@click.command("terminal")
@click.argument("project")
@click.argument("issue", type=click.IntRange(min=1))
@click.pass_context
def command(ctx: click.Context, project: str, issue: IssueId) -> None:
    """Show the terminal of an issue's session by lines on stdin and stdout."""
    found = find_project(load_config(ctx), project)
    if sys.stdin.isatty() or sys.stdout.isatty():
        raise UsageError("the page of another machine calls it: here it is sm attach")
    import anyio

    from sm.plugins.page.terminal.relay import relay

    anyio.run(relay, found, issue, STDIN, STDOUT)
