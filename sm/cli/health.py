"""`sm health`: what became of each replacement of a context."""

from __future__ import annotations

import sys
import time
from itertools import islice
from typing import TYPE_CHECKING

import click

from sm.base.output import console, say, say_lines
from sm.cli.arguments import optional_target_name
from sm.cli.options import json_option, make_lines_option, pass_machine
from sm.cli.words import print_json
from sm.views.times import format_age, format_moment, format_span

if TYPE_CHECKING:
    from sm.cli.table import TableColumn
    from sm.sessions.machine import Machine
    from sm.views.health import Recorded


@click.command("health")
@optional_target_name
@make_lines_option(20, what="How many of the newest.")
@click.option(
    "--check",
    is_flag=True,
    help="Only sessions whose last one was given up; exit code 1 if there are any.",
)
@json_option
@pass_machine
def command(machine: Machine, target: str, lines: int, check: bool, as_json: bool) -> None:
    """Show what became of each replacement of a context, of all sessions or of TARGET.

    The status is 'confirmed' if the new context has named its task, 'unconfirmed' if it has only
    got its prompt, and 'failed' if the context was not replaced or nothing has come from it.

    The newest is the last. TARGET may also be a session that ended long ago, by its id or as
    PROJECT#ISSUE. --check, for cron, lists only what a person has to see to.
    """
    from sm.views.health import list_given_up, list_records, tell

    all_of_them = list_given_up if check else list_records
    found = list(islice(all_of_them(machine.root, target), lines))[::-1]
    if as_json:
        print_json([tell(one) for one in found])
    elif found:
        _show(found)
    else:
        say("nothing to see to" if check else "none so far", err=True)
    if check and found:
        click.get_current_context().exit(1)


def _show(found: list[Recorded]) -> None:
    from sm.cli.table import list_plain_lines, make_table

    if sys.stdout.isatty():
        terminal = console()
        terminal.print(make_table(found, terminal.width, _columns()))
    else:
        say_lines(list_plain_lines(found, _columns()))


def _columns() -> tuple[TableColumn, ...]:
    from sm.cli.table import NARROW, VERY_WIDE, WIDE, TableColumn

    return (
        TableColumn("When", lambda row: format_moment(row.entry.at), WIDE),
        TableColumn("Age", lambda row: format_age(time.time() - row.entry.at), NARROW, WIDE),
        TableColumn("Session", lambda row: row.name),
        TableColumn("Status", lambda row: str(row.entry.status), coloured=True),
        TableColumn("Cause", lambda row: str(row.entry.details.cause)),
        TableColumn("Context", _context),
        TableColumn("Took", lambda row: format_span(row.entry.details.cycle_duration_ms / 1000)),
        TableColumn("Outcome", _outcome, share=2),
        TableColumn("Steps", _steps, VERY_WIDE, share=3),
        TableColumn("Document", lambda row: row.entry.details.handoff_file, VERY_WIDE, share=2),
    )


def _context(row: Recorded) -> str:
    percent = row.entry.details.context_at_trigger
    return "" if percent is None else f"{percent:.0f}%"


def _outcome(row: Recorded) -> str:
    """Return why it was given up, else the task, else the first document of the new context."""
    details = row.entry.details
    return details.error or details.task or details.handoff_file.rpartition("/")[2]


def _steps(row: Recorded) -> str:
    """Return the duration of each step: `request 0.4s, document 41s`."""
    stages = row.entry.details.steps
    return ", ".join(f"{one.step} {format_span(one.duration_ms / 1000)}" for one in stages)
