"""`sm budget`: what limits are set, what is used of them, and how a person raises one."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sm.base.output import say, say_lines, warn
from sm.cli.options import json_option, load_any_config, load_machine
from sm.cli.words import print_json

if TYPE_CHECKING:
    from sm.plugins.cost.budget.overview import Row

WHICH = (
    ("day", "The limit of today: of the project, without one that of all projects."),
    ("project", "The limit of all that the project uses."),
    ("session", "The limit of the session, not of its issue."),
)


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show each limit of what agents may use, and how much of it is used.

    Limits are set in the section 'budget' of the configuration. docs/COST.md says what counts, and
    what happens when one is used up.
    """
    if ctx.invoked_subcommand:
        return
    rows = _read_rows(ctx)
    if as_json:
        print_json(rows)
    elif rows:
        _show(rows)
    else:
        say("no budget is set: see docs/COST.md", err=True)


def _read_rows(ctx: click.Context) -> list[Row]:
    from sm.plugins.cost.budget.overview import list_rows, list_set
    from sm.plugins.cost.ledger.intake import open_current
    from sm.plugins.cost.settings import find_ledger
    from sm.plugins.cost.verb import hear_elsewhere

    machine, config = load_machine(ctx), load_any_config(ctx)
    limits = list(list_set(config, machine.root))
    if not limits:
        return []
    hear_elsewhere()
    with open_current(find_ledger(machine.settings), warn) as ledger:
        return list_rows(limits, machine.root, ledger)


def _show(rows: list[Row]) -> None:
    from sm.plugins.cost.budget.overview import HEADERS, list_cells

    table = [HEADERS, *map(list_cells, rows)]
    widths = [max(len(row[at]) for row in table) for at in range(len(HEADERS))]
    for name, *cells, decided in table:
        padded = (cell.rjust(wide) for cell, wide in zip(cells, widths[1:-1], strict=True))
        say_lines(["  ".join((name.ljust(widths[0]), *padded, decided)).rstrip()])
    if any(row.not_known for row in rows):
        say("≤: requests that are in no record count as the largest that is", err=True)


def _change_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What raises and lowers: `words: tuple[str, ...]`, and `which` limit."""
    function = click.argument("words", metavar="[TARGET | PROJECT [ISSUE]] AMOUNT", nargs=-1)(
        function
    )
    for name, text in reversed(WHICH):
        function = click.option(f"--{name}", "which", flag_value=name, default="", help=text)(
            function
        )
    return click.pass_context(function)


@command.command("raise")
@_change_options
def raise_(ctx: click.Context, words: tuple[str, ...], which: str) -> None:
    """Raise the limit of an issue by AMOUNT, or another one.

    AMOUNT is in the unit of the limit: 5, or 2M where tokens are counted. What has waited for it
    goes on. Who has raised what stays on record. The limit of a day is raised for today.
    """
    _change(ctx, words, which, 1)


@command.command("lower")
@_change_options
def lower(ctx: click.Context, words: tuple[str, ...], which: str) -> None:
    """Take back AMOUNT of what a limit was raised by."""
    _change(ctx, words, which, -1)


def _change(ctx: click.Context, words: tuple[str, ...], which: str, sign: int) -> None:
    from sm.plugins.cost.budget import meant, raises
    from sm.plugins.cost.verb import hear_elsewhere
    from sm.sessions.caller import identify

    machine = load_machine(ctx)
    by = raises.name_person(identify(machine.root, os.environ))
    target, text = meant.split_words(words)
    meant.check_amount(ctx, target, text, which)
    limit = meant.find_limit(ctx, target, which)
    amount = sign * raises.read_amount(text, limit.amount.unit)
    say(raises.change(machine, limit, amount, by))
    hear_elsewhere(lambda _: None)
