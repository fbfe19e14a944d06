"""`sm sync`: exchange finished work with a remote beside the hub."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sm.base.output import say, say_lines, warn
from sm.base.text import format_count
from sm.cli.options import project_option
from sm.sessions.project import Project

if TYPE_CHECKING:
    from sm.setup.sync import CloneStanding, Synced

SHOWN = 10


@click.command()
@click.option("--remote", metavar="NAME", help="The remote that people push to; default: origin.")
@click.option("--dry-run", is_flag=True, help="Say what would be carried over, and change nothing.")
@click.option("--merge", is_flag=True, help="If both have moved on, merge them, untested.")
@project_option
@click.pass_context
def command(
    ctx: click.Context, project: Project, remote: str | None, dry_run: bool, merge: bool
) -> None:
    """Exchange finished work with the people on another remote.

    It is for a project whose agents push to a hub of their own beside 'origin'. What people have
    pushed to the primary branch of 'origin' goes to the hub, where the agents begin. What agents
    have finished goes to 'origin'. If both have moved on, nothing is changed: it says what helps,
    with exit code 1. With --merge both get a merge, unless there is a conflict. Your branches and
    your working tree are not touched.
    """
    from sm.setup import sync
    from sm.setup.sync import Direction

    other = sync.choose_remote(project.settings, remote)
    if merge and not dry_run:
        _merge(project, other)
        return
    found = (sync.look if dry_run else sync.sync)(project.settings, other)
    if found.standing.direction is Direction.APART:
        if merge:
            sync.check_merge(project.settings, found.standing)
            say(f"would merge {_spell_both(found.standing)}")
            return
        _tell_apart(project, found.standing)
        ctx.exit(1)
    say_lines(_lines(found, dry_run))


def _merge(project: Project, other: str) -> None:
    from sm.sessions.caller import identify
    from sm.setup import sync

    identify(project.root, os.environ).check_may_merge()
    made, found = sync.merge(project.settings, other)
    if made:
        say(f"merged {_spell_both(found.standing)} as {made[:12]}, which no CI has tested")
        say("sm doctor --ci runs the CI command on it")
    say_lines(_lines(found, is_dry=False))


def _spell_both(standing: CloneStanding) -> str:
    return f"'{standing.beside}/{standing.branch}' and '{standing.hub}/{standing.branch}'"


def _lines(found: Synced, is_dry: bool) -> Iterator[str]:
    from sm.setup.sync import Direction

    standing = found.standing
    names = _spell_both(standing)
    if standing.direction is Direction.NONE:
        yield f"up to date: {names} are at {standing.ours[:12]}"
        return
    giver = standing.beside if standing.receiver == standing.hub else standing.hub
    count = format_count(standing.only_ours + standing.only_theirs, "commit")
    verb = "would carry" if is_dry else "carried"
    yield f"{verb} {count} from '{giver}' to '{standing.receiver}':"
    yield from (f"  {line}" for line in found.commits[:SHOWN])
    if (more := standing.only_ours + standing.only_theirs - SHOWN) > 0:
        yield f"  and {more} more"


def _tell_apart(project: Project, standing: CloneStanding) -> None:
    from sm.setup.sync import list_remedies

    ours, theirs = (f"'{each}/{standing.branch}'" for each in (standing.hub, standing.beside))
    lead, lag = (
        format_count(count, "commit") for count in (standing.only_ours, standing.only_theirs)
    )
    warn(
        f"both have gone on: {theirs} has {lag} that {ours} lacks, {ours} has {lead} that {theirs} "
        "lacks: nothing was changed"
    )
    for line in list_remedies(project.settings, standing):
        say(line, err=True)
