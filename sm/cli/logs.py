"""`sm logs`: what a session's terminal said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.base.issue_id import IssueId
from sm.base.output import pass_on, say_text
from sm.cli.arguments import past_place_argument
from sm.cli.options import load_machine, make_lines_option

if TYPE_CHECKING:
    from sm.sessions.project import Project
    from sm.sessions.session import AnySession


@click.command("logs")
@past_place_argument
@click.option("--follow", "-f", is_flag=True, help="Go on until the session ends, or Ctrl-C.")
@make_lines_option(100, least=0)
@click.option(
    "--raw", is_flag=True, help="Print everything, with the terminal's control sequences."
)
@click.option("--monitor", is_flag=True, help="Print what the session's monitor said instead.")
@click.pass_context
def command(
    click_context: click.Context,
    place: AnySession | tuple[Project, IssueId] | str,
    follow: bool,
    lines: int,
    raw: bool,
    monitor: bool,
) -> None:
    """Show what the terminal of a session's agent said, line by line as it was in the end.

    What a program has drawn over is left out. --follow prints new lines as they come, without
    control sequences; --raw prints everything.

    Name the session by id, name or PROJECT#ISSUE, or give PROJECT ISSUE. The log of a session that
    has ended is kept as long as 'logs' in the configuration says; for one of 'sm new' give its id.
    """
    from sm.views import logs

    if not monitor and (text := _read_past_there(click_context, place, lines, raw=raw)):
        _put(text, raw)
        return
    path, is_over = _source(click_context, place, monitor)
    size = path.stat().st_size
    if raw or monitor:
        _put(logs.read_last_lines(path, lines, end=size, raw=raw), raw)
    else:
        text = logs.read_shown_lines(path, lines, end=size)
        goes_on = follow and logs.ends_within_line(path, size)
        _put(text.removesuffix("\n") if goes_on else text, raw)
    if not follow:
        return
    try:
        for text in logs.follow(path, is_over, start=size, raw=raw):
            _put(text, raw)
    except KeyboardInterrupt:
        return  # the way to end it, so no error


def _read_past_there(
    click_context: click.Context,
    place: AnySession | tuple[Project, IssueId] | str,
    lines: int,
    *,
    raw: bool,
) -> str:
    """Return what the node still has of a session that has ended there; '' if it was here."""
    from sm.cli.elsewhere import find_past

    there = find_past(click_context, place) if isinstance(place, tuple | str) else None
    return there.read_past_log(lines, raw=raw) if there else ""


def _source(
    click_context: click.Context,
    place: AnySession | tuple[Project, IssueId] | str,
    monitor: bool,
) -> tuple[Path, Callable[[], bool]]:
    """Return the file, and whether nothing more will be added to it."""
    from sm.sessions.session import AdHocSession
    from sm.views import logs

    if isinstance(place, AdHocSession):
        path = logs.find_ad_hoc_file(place, monitor=monitor)
        return path, lambda: not place.is_living
    if isinstance(place, str):
        return logs.find_kept_file(
            load_machine(click_context).root, place, monitor=monitor
        ), lambda: True
    if isinstance(place, tuple):
        project, issue = place
    else:
        project, issue = place.project, place.issue
    return logs.find_log_file(project, issue, monitor=monitor), lambda: logs.is_over(project, issue)


def _put(text: str, raw: bool) -> None:
    if raw:
        pass_on(text.encode("utf-8", "surrogateescape"))
    else:
        say_text(text, nl=False)
