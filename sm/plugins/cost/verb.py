"""`sm cost`: what agents have used, and what it cost."""

from __future__ import annotations

import re
import shutil
import sys
import time
from typing import TYPE_CHECKING

import click

from sm.base.output import say, say_lines
from sm.cli.options import json_option, pass_machine
from sm.cli.words import print_json

if TYPE_CHECKING:
    from pathlib import Path

    from sm.plugins.cost.sums import By, Sum
    from sm.sessions.machine import Machine

DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
GROUPS = ("issue", "day", "model", "project", "agent")


def _begin(_ctx: click.Context, _param: click.Parameter, text: str | None) -> str:
    """The first day that is meant, '' for all."""
    from sm.config import duration
    from sm.plugins.cost.ledger import name_day

    if text is None:
        return ""
    if DAY.fullmatch(text):
        return text
    try:
        return name_day(time.time() - duration.parse(text))
    except ValueError as error:
        raise click.BadParameter(
            f"expected a day such as 2026-11-28, or a time such as 7d or 12h, got {text!r}"
        ) from error


@click.command("cost")
@click.option("--by", type=click.Choice(GROUPS), default="issue", help="What to sum up together.")
@click.option(
    "--since", metavar="DAY", callback=_begin, help="From that day on: 2026-11-28, or 7d ago."
)
@click.option("--project", "-p", default="", metavar="NAME", help="Of this project only.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@json_option
@pass_machine
def command(
    machine: Machine, by: str, since: str, project: str, as_csv: bool, as_json: bool
) -> None:
    """Show what agents have used, and what that costs at list prices.

    Each request counts once, also those of subagents. ≥ marks what is more in truth: some requests
    are in no record of the agent CLI. docs/COST.md says how each figure comes about.
    """
    from sm.plugins.cost.settings import find_ledger
    from sm.plugins.cost.sums import By

    sums = _read(find_ledger(machine.settings), By(by), since, project)
    if as_json:
        print_json(sums)
    elif as_csv:
        _print_csv(By(by), sums)
    elif sums:
        _show(By(by), sums)
    else:
        say("no requests are known", err=True)


def _read(path: Path, by: By, since: str, project: str) -> list[Sum]:
    from sm.plugins.cost.entering import open_current
    from sm.plugins.cost.sums import read_sums
    from sm.store import sqlite_file

    if not sqlite_file.is_there(path):
        return []
    with open_current(path) as ledger:
        return read_sums(ledger, by, since=since, project=project)


def _show(by: By, sums: list[Sum]) -> None:
    from sm.plugins.cost.display import list_lines, list_notes
    from sm.plugins.cost.sums import add_up

    total = add_up(sums)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    say_lines(list_lines(by, sums, total, width))
    for note in list_notes(total):
        say(note, err=True)


def _print_csv(by: By, sums: list[Sum]) -> None:
    import csv
    import io

    from sm.plugins.cost.display import list_csv_rows

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(list_csv_rows(by, sums))
    say_lines(text.getvalue().splitlines())
