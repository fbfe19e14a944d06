"""`sm logs`: what a session's terminal said."""

from __future__ import annotations

import sys

import click

from sm.cli.options import pass_config, project_issue
from sm.config.schema import Config, Project


@click.command("logs")
@project_issue
@click.option("--follow", "-f", is_flag=True, help="Go on until the session ends, or Ctrl-C.")
@click.option(
    "--lines",
    "-n",
    metavar="LINES",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="How many lines of the end.",
)
@click.option("--raw", is_flag=True, help="With the terminal's control sequences.")
@click.option("--monitor", is_flag=True, help="What the session's monitor said instead.")
@pass_config
def command(
    config: Config, project: Project, issue: int, follow: bool, lines: int, raw: bool, monitor: bool
) -> None:
    """Show what the terminal of ISSUE's agent said."""
    from sm.workflow import logs
    from sm.workflow.context import Context

    ctx = Context(config, project)
    path = logs.log_file(ctx, issue, monitor=monitor)
    size = path.stat().st_size
    _put(logs.last_lines(path, lines, end=size, raw=raw), raw)
    if not follow:
        return
    try:
        for text in logs.follow(path, lambda: logs.is_over(ctx, issue), start=size, raw=raw):
            _put(text, raw)
    except KeyboardInterrupt:
        return  # the way to end it, so no error


def _put(text: str, raw: bool) -> None:
    errors = "surrogateescape" if raw else "replace"
    sys.stdout.buffer.write(text.encode("utf-8", errors))
    sys.stdout.buffer.flush()
