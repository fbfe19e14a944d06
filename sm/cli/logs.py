"""`sm logs`: what a session's terminal said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.cli.options import load_config, place_argument
from sm.output import pass_on, say_text

if TYPE_CHECKING:
    from sm.config.schema import Project
    from sm.session.registry import AnySession


@click.command("logs")
@place_argument
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
@click.pass_context
def command(
    click_context: click.Context,
    place: AnySession | tuple[Project, int],
    follow: bool,
    lines: int,
    raw: bool,
    monitor: bool,
) -> None:
    """Show what the terminal of a session's agent said.

    The session by id, name or PROJECT#ISSUE, or the one of PROJECT ISSUE.
    """
    from sm.workflow import logs

    path, is_over = _source(click_context, place, monitor)
    size = path.stat().st_size
    _put(logs.last_lines(path, lines, end=size, raw=raw), raw)
    if not follow:
        return
    try:
        for text in logs.follow(path, is_over, start=size, raw=raw):
            _put(text, raw)
    except KeyboardInterrupt:
        return  # the way to end it, so no error


def _source(
    click_context: click.Context, place: AnySession | tuple[Project, int], monitor: bool
) -> tuple[Path, Callable[[], bool]]:
    """The file, and whether nothing more will be added to it."""
    from sm.session import targets
    from sm.session.registry import AdHocSession
    from sm.workflow import logs
    from sm.workflow.context import Context
    from sm.workflow.host import context_of

    if isinstance(place, AdHocSession):
        path = logs.ad_hoc_file(place, monitor=monitor)
        return path, lambda: not targets.is_living(place)
    if isinstance(place, tuple):
        ctx, issue = Context(load_config(click_context), place[0]), place[1]
    else:
        ctx, issue = context_of(place), place.issue
    return logs.log_file(ctx, issue, monitor=monitor), lambda: logs.is_over(ctx, issue)


def _put(text: str, raw: bool) -> None:
    if raw:
        pass_on(text.encode("utf-8", "surrogateescape"))
    else:
        say_text(text, nl=False)
