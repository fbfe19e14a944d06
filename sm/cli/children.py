"""`sm children`: which session has begun which."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sm.base.output import say, say_lines
from sm.base.text import one_line
from sm.cli.arguments import optional_target
from sm.cli.options import json_option, pass_machine
from sm.cli.words import print_json
from sm.views.times import format_age

if TYPE_CHECKING:
    from sm.sessions.machine import Machine
    from sm.sessions.session import AnySession
    from sm.views.family import Relative


@click.command("children")
@optional_target
@json_option
@pass_machine
def command(machine: Machine, session: AnySession | None, as_json: bool) -> None:
    """Show the sessions that TARGET has begun, and those that these have begun.

    Without TARGET: those of the session that asks; for a person, all sessions.
    """
    from sm.sessions.caller import identify
    from sm.views.family import list_descendants

    top = session or identify(machine.root, os.environ).session
    found = list_descendants(machine.root, top)
    if as_json:
        print_json(found)
    elif found:
        say_lines(_lines(found))
    else:
        say("no sessions have been begun here" if top else "no sessions", err=True)


def _lines(found: list[Relative]) -> Iterator[str]:
    names = ["  " * one.depth + one.name for one in found]
    wide = max(len(name) for name in names)
    for name, one in zip(names, found, strict=True):
        waiting = f"  {one.waiting} waiting" if one.waiting else ""
        line = (
            f"{name:<{wide}}  {one.state:<9}  {format_age(one.age_s):>4}  {one.provider}  {one.id}"
        )
        yield f"{line}{waiting}  {one_line(one.cwd)}"
