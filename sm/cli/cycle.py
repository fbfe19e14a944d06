"""`sm cycle`: have the context of a session replaced, by way of a handoff document."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sm.base.errors import SmError, UsageError
from sm.base.output import say, say_lines
from sm.cli.arguments import target_argument
from sm.cli.options import json_option
from sm.cli.words import print_json
from sm.views.times import format_age, format_span

if TYPE_CHECKING:
    from sm.context.cycle import Preview
    from sm.context.rotation import RotationRecord
    from sm.sessions.session import AnySession


@click.command("cycle")
@target_argument
@click.option("--dry-run", is_flag=True, help="Only say what would be done, with its real values.")
@click.option("--wait", is_flag=True, help="Tell each step, until it is over.")
@json_option
def command(session: AnySession, dry_run: bool, wait: bool, as_json: bool) -> None:
    """Have the agent of TARGET write a handoff document, and go on from it in a new context.

    This cycle also begins by itself when the context is full. The command returns at once, and the
    session's monitor carries the cycle on. --wait returns at its end, with exit code 1 if it was
    given up. A session may do this to itself and to those that it has begun.
    """
    from sm.acts.execution import list_paused, rotate, tell_rotation
    from sm.context import cycle
    from sm.sessions.caller import identify

    if dry_run:
        found = cycle.preview(session)
        print_json(found) if as_json else say_lines(_lines(found))
        return
    caller = identify(session.root, os.environ)
    if wait and caller.name == session.name:
        raise UsageError("a session cannot wait for its own new context: leave --wait out")
    record = rotate(session, caller)
    if wait:
        _follow(session, record, as_json)
    elif as_json:
        print_json({"session": session.name, "rotation": record.id, "folder": record.folder})
    else:
        say_lines([tell_rotation(session, record), *list_paused(session)])


def _follow(session: AnySession, record: RotationRecord, as_json: bool) -> None:
    from sm.context import cycle
    from sm.views.event_words import tell

    for event in cycle.follow(session, record):
        line = f"{'+' + format_span(event.at - record.began_at):>7}  {tell(event)}"
        say(line, err=as_json)
    found = cycle.find_outcome(session, record)
    if as_json and found:
        print_json(found)
    if found is None:
        raise SmError(f"'{session.address}' has ended before: see 'sm trace'")
    if found.details.error:
        raise SmError(f"it was given up: {found.details.error}")


def _lines(found: Preview) -> Iterator[str]:
    yield f"{found.name}: {_fullness(found)}; its agent is {found.state}"
    by_itself = "by itself" if found.automatic else "only by hand: it is turned off"
    yield f"the cycle begins at {found.threshold:g}%, {by_itself}"
    for number, step in enumerate(found.steps, 1):
        head, *more = step.split("\n")
        yield f"{number}. {head}"
        yield from (f"      {line}" for line in more)
    yield f"in the way now: {'; '.join(found.obstacles) or 'nothing'}"
    if found.refusal:
        yield f"it would not begin: {found.refusal}"


def _fullness(found: Preview) -> str:
    if found.percent is None or found.read_age_s is None:
        return "how full its context is, is not known"
    return f"its context was {found.percent:g}% full {format_age(found.read_age_s)} ago"
