"""`sm children`: which session has begun which."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sm.base.output import say, say_lines
from sm.base.text import one_line
from sm.cli.arguments import optional_target
from sm.cli.options import json_option, pass_machine
from sm.cli.words import print_json
from sm.views.times import tell_age

if TYPE_CHECKING:
    from sm.sessions.machine import Machine
    from sm.sessions.session import AnySession
    from sm.views.session_row import SessionRow


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
    from sm.views.session_row import KIN, tell

    top = session or identify(machine.root, os.environ).session
    found = list_descendants(machine.root, top)
    if as_json:
        now = time.time()
        print_json([tell(row, KIN, now) for row in found])
    elif found:
        say_lines(_lines(found))
    else:
        say("no sessions have been begun here" if top else "no sessions", err=True)


def _lines(found: list[SessionRow]) -> Iterator[str]:
    names = ["  " * one.depth + one.name for one in found]
    wide = max(len(name) for name in names)
    for name, one in zip(names, found, strict=True):
        waiting = f"  {one.queued} waiting" if one.queued else ""
        line = (
            f"{name:<{wide}}  {one.state:<9}  {tell_age(one.begun_at):>4}  {one.provider}  {one.id}"
        )
        yield f"{line}{waiting}  {one_line(one.cwd)}"
