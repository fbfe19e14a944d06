"""`sm whoami`: which session this is."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from sm.base.errors import SmError
from sm.base.output import say
from sm.cli.options import json_option, pass_machine
from sm.cli.words import print_json

if TYPE_CHECKING:
    from sm.sessions.machine import Machine


@click.command("whoami")
@json_option
@pass_machine
def command(machine: Machine, as_json: bool) -> None:
    """Show the session that you are in; exit code 1 if you are in none."""
    from sm.sessions.caller import identify
    from sm.views.family import read_row
    from sm.views.session_row import KIN, tell

    session = identify(machine.root, os.environ).session
    if session is None:
        raise SmError(
            "you are not inside an sm session: from this shell you may control all of them"
        )
    found = read_row(session)
    if as_json:
        print_json(tell(found, KIN, time.time()))
        return
    for label, value in (
        ("id", found.id),
        ("name", found.name),
        ("parent", found.parent or "a person"),
        ("provider", found.provider),
        ("issue", f"{found.project}#{found.issue}" if found.issue else ""),
        ("dir", found.cwd),
    ):
        if value:
            say(f"{label:<8} {value}")
