"""`sm needs`: what waits for a person, and the command that answers it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from sm.base.output import console, say, say_lines
from sm.cli.need_lines import NOTHING, UNSEEN, draw_needs, list_plain_needs, list_whole_needs
from sm.cli.options import (
    json_option,
    known_projects_option,
    list_named,
    load_config,
    load_machine,
)
from sm.cli.words import print_json

if TYPE_CHECKING:
    from sm.sessions.project import Project
    from sm.views.open_need import OpenNeed


@click.command("needs")
@json_option
@click.option(
    "--verbose", "-v", is_flag=True, help="All that an agent has said, with its lines and choices."
)
@known_projects_option
@click.pass_context
def command(
    ctx: click.Context, projects: tuple[Project, ...], as_json: bool, verbose: bool
) -> None:
    """Show what waits for you, since when, and the command that answers it.

    Questions, dialogs, reviews, merges that you must allow, blocked issues, what has failed or was
    refused, limits that are used up, a login that is lost, a dev-poll that does not run, a full
    disk. No forge is asked. You put your own words in the place of TEXT. A line that ends with […]
    is not all: -v shows the rest.

    The exit code is 1 if something waits, and 0 if nothing does.
    """
    found = _list(ctx, projects)
    if as_json:
        print_json(found)
    elif not found:
        _say_nothing(projects)
    elif verbose:
        say_lines(list_whole_needs(found))
    elif sys.stdout.isatty():
        terminal = console()
        for line in draw_needs(found, terminal.width):
            terminal.print(line, soft_wrap=True)
    else:
        say_lines(list_plain_needs(found))
    ctx.exit(1 if found else 0)


def _say_nothing(projects: tuple[Project, ...]) -> None:
    from sm.views.poll_absence import START, list_unseen

    if unseen := list_unseen(projects):
        named = ", ".join(f"'{name}'" for name in unseen)
        say(f"{UNSEEN}: dev-poll has not looked at {named} yet: {START}")
    else:
        say(NOTHING)


def _list(ctx: click.Context, projects: tuple[Project, ...]) -> list[OpenNeed]:
    """List needs of the projects, and of sessions without one unless projects are named."""
    from sm.views.needs import list_all_needs, list_machine_needs

    machine = load_machine(ctx)
    is_of_some = bool(list_named(ctx, projects))
    found = list_all_needs(projects) if is_of_some else list_machine_needs(machine, projects)
    if not projects and not found:
        load_config(ctx)  # says that there is none
    return found
