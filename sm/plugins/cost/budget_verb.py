"""`sm budget`: what limits are set, what is used of them, and how a person raises one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sm.base.errors import UsageError
from sm.base.issue_id import read_issue
from sm.base.output import say, say_lines, warn
from sm.cli.arguments import name_target
from sm.cli.invocation import find_meant_project, find_project, list_names
from sm.cli.options import json_option, load_any_config, load_config, load_machine
from sm.cli.words import print_json
from sm.config.shapes import read_section
from sm.issues.placements import read_placement
from sm.plugins.cost.budget.limits import (
    find_day_limit,
    find_issue_limit,
    find_machine_limit,
    find_placed_limit,
    find_project_limit,
    find_session_limit,
    read_own,
)
from sm.plugins.cost.budget.settings import Budget
from sm.sessions import registry
from sm.sessions.address import find, read_address
from sm.sessions.session import IssueSession

if TYPE_CHECKING:
    from sm.plugins.cost.budget.overview import LimitRow
    from sm.plugins.cost.budget.rules import BudgetLimit
    from sm.sessions.project import Project
    from sm.sessions.session import AnySession


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


def _read_rows(ctx: click.Context) -> list[LimitRow]:
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


def _show(rows: list[LimitRow]) -> None:
    from sm.plugins.cost.budget.overview import HEADERS, list_cells

    table = [HEADERS, *map(list_cells, rows)]
    widths = [max(len(row[at]) for row in table) for at in range(len(HEADERS))]
    for name, *cells, decided in table:
        padded = (cell.rjust(wide) for cell, wide in zip(cells, widths[1:-1], strict=True))
        say_lines(["  ".join((name.ljust(widths[0]), *padded, decided)).rstrip()])
    if any(row.not_known for row in rows):
        say("≤: requests that are in no record count as the largest that is", err=True)


def _change_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options that raise and lower: `words: tuple[str, ...]`, and `which` limit."""
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
    from sm.plugins.cost.budget import raises
    from sm.plugins.cost.verb import hear_elsewhere
    from sm.sessions.caller import identify

    machine = load_machine(ctx)
    by = raises.name_person(identify(machine.root, os.environ))
    target, text = _split_words(words)
    _check_amount(ctx, target, text, which)
    limit = _find_limit(ctx, target, which)
    amount = sign * raises.read_amount(text, limit.amount.unit)
    say(raises.change(machine, limit, amount, by))
    hear_elsewhere(lambda _: None)


UNITS = ("USD", "tokens", "token")


def _split_words(words: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Split what is meant from the amount behind it, which may be two words: `5 USD`."""
    if len(words) > 1 and words[-1] in UNITS:
        return words[:-2], f"{words[-2]} {words[-1]}"
    if not words:
        raise UsageError("by how much? write an amount, such as 5 or 2M")
    return words[:-1], words[-1]


def _check_amount(ctx: click.Context, target: tuple[str, ...], text: str, which: str) -> None:
    """Refuse words that name an issue, and no amount behind it.

    Raises:
        UsageError: it says where the amount belongs.

    """
    if which:
        return
    is_issue = not target and read_address(text) is not None
    if not is_issue and len(target) == 1 and read_issue(text):
        known = load_any_config(ctx).project(target[0])
        is_issue = known is not None and _find_without_issue(ctx, target) is None
    if is_issue:
        called = f"{ctx.command_path} {' '.join((*target, text))}"
        raise UsageError(f"by how much? write an amount behind it: {called} 5, or 2M for tokens")


def _find_limit(ctx: click.Context, words: tuple[str, ...], which: str) -> BudgetLimit:
    """The limit that is meant: `which` is `day`, `project`, `session`, or '' for an issue's.

    Raises:
        UsageError: there is no such thing, or no limit is set for it.

    """
    match which:
        case "day" if not words:
            own = read_section(load_any_config(ctx), Budget)
            return _check(find_machine_limit(own, time.time()), "a day: budget.day, at the top")
        case "day":
            project = _find_project(ctx, words)
            limit = find_day_limit(project.config, project.settings, time.time())
            return _check(limit, f"a day of '{project.name}' alone: leave the project out")
        case "project":
            project = _find_project(ctx, words)
            return _check(find_project_limit(project.settings), f"'{project.name}': budget.project")
        case "session" if words and (limit := _find_placed_limit(ctx, words)):
            return limit
        case "session":
            return _find_session_limit(_find_session(ctx, words))
    if words and (session := _find_without_issue(ctx, words)):
        return _find_session_limit(session)
    return _find_issue_limit(ctx, words)


def _check(limit: BudgetLimit | None, what: str) -> BudgetLimit:
    if limit is None:
        raise UsageError(f"no limit is set for {what}")
    return limit


def _find_project(ctx: click.Context, words: tuple[str, ...]) -> Project:
    config = load_config(ctx)
    if len(words) > 1:
        raise UsageError(f"expected a project, got {list_names(list(words))}")
    if words:
        return find_project(config, words[0])
    if only := find_meant_project(config):
        return only
    names = [one.name for one in config.projects]
    raise UsageError(f"which project? there is {list_names(names)}")


def _find_session(ctx: click.Context, words: tuple[str, ...]) -> AnySession:
    if not words:
        raise UsageError("which session? name it, or a project and an issue")
    return find(load_machine(ctx).root, name_target(ctx, words))


def _find_session_limit(session: AnySession) -> BudgetLimit:
    limit = find_session_limit(session, read_own(session))
    return _check(limit, f"the session '{session.address}': budget.session")


def _find_placed_limit(ctx: click.Context, words: tuple[str, ...]) -> BudgetLimit | None:
    """The limit of the session that they name, if it runs elsewhere and has one."""
    name, _, number = name_target(ctx, words).partition("#")
    settings = load_any_config(ctx).project(name)
    issue = read_issue(number)
    if settings is None or issue is None:
        return None
    placement = read_placement(load_machine(ctx).root.project(name), issue)
    return find_placed_limit(read_section(settings, Budget), placement) if placement else None


def _find_without_issue(ctx: click.Context, words: tuple[str, ...]) -> AnySession | None:
    """The session that they name, if it works on no issue: it has only one limit of its own."""
    name = name_target(ctx, words)
    known = registry.list_all(load_machine(ctx).root, lambda _: None)
    return next(
        (
            one
            for one in known
            if name in (one.address, one.name) and not isinstance(one, IssueSession)
        ),
        None,
    )


def _find_issue_limit(ctx: click.Context, words: tuple[str, ...]) -> BudgetLimit:
    name, _, number = name_target(ctx, words).partition("#")
    issue = read_issue(number)
    if issue is None:
        raise UsageError(
            "raise what? name a session, an issue such as 'shop 7', or add --day or --project"
        )
    project = find_project(load_config(ctx), name)
    own = read_section(project.settings, Budget)
    limit = find_issue_limit(own, project.name, issue)
    return _check(limit, f"an issue of '{project.name}': budget.issue")
