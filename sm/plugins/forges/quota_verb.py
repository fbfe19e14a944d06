"""`sm quota`: the requests to forges elsewhere, and what is left of their limits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import click

from sm.base.output import say, say_lines
from sm.base.text import one_line
from sm.cli.options import json_option, pass_config, projects_option
from sm.cli.words import print_json
from sm.config.schema import Config
from sm.views.times import format_moment

if TYPE_CHECKING:
    from sm.cli.table import TableColumn
    from sm.plugins.forges.quota import Quota, SpentRequests
    from sm.sessions.project import Project


class QuotaRow(NamedTuple):
    """A purpose of a project."""

    project: str
    spent: SpentRequests


@click.command("quota")
@json_option
@projects_option
@pass_config
def command(config: Config, projects: tuple[Project, ...], as_json: bool) -> None:
    """Show the requests to forges elsewhere by session and purpose, and what is left.

    A look at the forge is made for all sessions; what one session or its agent asks for counts for
    that one. POINTS count against a limit; an answer that nothing has changed costs none. The
    embedded forge gets no requests.
    """
    from sm.plugins.forges.quota import read_quotas
    from sm.store.paths import Root
    from sm.store.root_check import check_root

    found = read_quotas(
        check_root(Root(config.state_root)), [project.settings for project in projects]
    )
    if as_json:
        print_json(found)
    elif found:
        _show(found)
    else:
        say("no requests in the last 24 hours", err=True)


def _show(found: list[Quota]) -> None:
    from sm.cli.table import list_plain_lines

    rows = [QuotaRow(quota.project, spent) for quota in found for spent in quota.spent]
    say_lines(list_plain_lines(rows, _columns()))
    for quota in found:
        _show_limits(quota)


def _show_limits(quota: Quota) -> None:
    where = one_line(f"{quota.project} ({quota.forge})")
    for limit in quota.limits:
        until = format_moment(limit.resets_at)
        say(f"{where}: {limit.left:,} of {limit.limit:,} ({limit.bucket}) left until {until}")
    if quota.blocked_until > time.time():
        say(f"{where}: takes no requests until {format_moment(quota.blocked_until)}")


def _columns() -> tuple[TableColumn, ...]:
    from sm.cli.table import TableColumn

    return (
        TableColumn("Project", lambda row: row.project),
        TableColumn("Session", lambda row: row.spent.session or "(all)"),
        TableColumn("Purpose", lambda row: row.spent.purpose),
        TableColumn("Hour", lambda row: f"{row.spent.hour.requests:,}"),
        TableColumn("Points", lambda row: f"{row.spent.hour.points:,}"),
        TableColumn("24 h", lambda row: f"{row.spent.day.requests:,}"),
        TableColumn("Points 24 h", lambda row: f"{row.spent.day.points:,}"),
        TableColumn("Unchanged", lambda row: f"{row.spent.day.unchanged:,}"),
        TableColumn("Failed", lambda row: f"{row.spent.day.failed:,}"),
    )
