"""`sm cost`: what agents have used, and what it cost."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from sm.base.errors import UsageError
from sm.base.output import say, say_lines, warn
from sm.cli.options import json_option, load_any_config, pass_machine
from sm.cli.words import print_json

if TYPE_CHECKING:
    from pathlib import Path

    from sm.plugins.cost.ledger.sums import Sum, SumGroup
    from sm.sessions.machine import Machine

GROUPS = ("issue", "day", "model", "project", "agent", "host")


def _begin(_ctx: click.Context, _param: click.Parameter, text: str | None) -> str:
    """The first day that is meant, '' for all."""
    from sm.plugins.cost.report import parse_since

    try:
        return parse_since(text or "")
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command("cost")
@click.option("--by", type=click.Choice(GROUPS), default="issue", help="What to sum up together.")
@click.option(
    "--since", metavar="DAY", callback=_begin, help="From that day on: 2026-11-28, or 7d ago."
)
@click.option("--project", "-p", default="", metavar="NAME", help="Of this project only.")
@click.option("--prices", is_flag=True, help="Show the prices, and when each was read.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@json_option
@pass_machine
def command(
    machine: Machine,
    by: str,
    since: str,
    project: str,
    prices: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Show what agents have used, and what that costs at list prices.

    Each request counts once, also those of subagents. ≥ marks what is more in truth: some requests
    are in no record of the agent CLI. docs/COST.md says how each figure comes about.
    """
    from sm.plugins.cost.ledger.sums import SumGroup
    from sm.plugins.cost.report import check_project, list_price_notes, read_report
    from sm.plugins.cost.settings import find_ledger

    path = find_ledger(machine.settings)
    try:
        check_project(path, project, machine.settings)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if prices:
        _show_prices(path, since, project, as_json=as_json)
        return
    hear_elsewhere()
    sums = read_report(path, SumGroup(by), since, project, warn)
    if as_json:
        print_json(sums)
    elif as_csv:
        _print_csv(SumGroup(by), sums)
    elif sums:
        _show(SumGroup(by), sums, list_price_notes(path, since, project))
    else:
        say("no requests are known", err=True)


def hear_elsewhere(warn: Callable[[str], object] = warn) -> None:
    """Have the ledger know what was used on other machines, and these what is left.

    Without a configuration there are none.
    """
    from sm.plugins.cost.ledger.nodes import may_be_any
    from sm.sessions.machine import Machine

    try:
        config = load_any_config(click.get_current_context())
    except UsageError:  # the ledger can be read all the same
        return
    if may_be_any(Machine(config).root, [one.name for one in config.projects]):
        from sm.plugins.cost.sync.home import ask_for_person

        ask_for_person(config, warn)


def _show(by: SumGroup, sums: list[Sum], notes: list[str]) -> None:
    from sm.plugins.cost.display import make_table

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    table = make_table(by, sums, width)
    say_lines(table.lines)
    for note in (*table.notes, *notes):
        say(note, err=True)


def _show_prices(path: Path, since: str, project: str, *, as_json: bool) -> None:
    """Show the prices of the models that were used, without any of those that are listed."""
    from sm.plugins.cost.display import make_price_table
    from sm.plugins.cost.ledger.prices import list_prices
    from sm.plugins.cost.ledger.sums import SumGroup
    from sm.plugins.cost.report import list_price_notes, read_known

    models = [
        one.name for one in read_known(path, [SumGroup.MODEL], since, project)[SumGroup.MODEL]
    ]
    found = list_prices(models)
    if as_json:
        print_json(found)
        return
    say_lines(make_price_table(found))
    for note in list_price_notes(path, since, project):
        say(note, err=True)


def _print_csv(by: SumGroup, sums: list[Sum]) -> None:
    import csv
    import io

    from sm.plugins.cost.display import list_csv_rows

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(list_csv_rows(by, sums))
    say_lines(text.getvalue().splitlines())
