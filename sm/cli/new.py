"""`sm new`: begin a session that works on no issue."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.base.output import say
from sm.cli.options import json_option, pass_machine
from sm.cli.words import read_text

if TYPE_CHECKING:
    from sm.sessions.machine import Machine


@click.command("new")
@click.option("--name", metavar="NAME", default="", help="A name for it, beside its id.")
@click.option("--provider", metavar="PROFILE", default="", help="Its agent CLI; default: claude.")
@click.option(
    "--command",
    "line",
    metavar="LINE",
    default="",
    help="Run this instead of the profile's command.",
)
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Where it works; default: here.",
)
@click.option(
    "--pass-env",
    "pass_env",
    metavar="VARIABLE",
    multiple=True,
    help="A variable of your environment that the agent may see; may be given several times.",
)
@json_option
@click.argument("prompt", nargs=-1)
@pass_machine
def command(
    machine: Machine,
    name: str,
    provider: str,
    line: str,
    directory: Path,
    pass_env: tuple[str, ...],
    as_json: bool,
    prompt: tuple[str, ...],
) -> None:
    """Start an agent with PROMPT in a session of its own; '-' reads PROMPT from standard input.

    It prints the session's id, and its name if it has one. No configuration is needed; if there is
    one, it gives the profiles and the tmux server. A session that calls this becomes the parent.

    Of your environment the agent gets what every agent gets (HOME, PATH and others), what
    agent.pass_env names, and no token that you do not pass by name. If the agent ends within two
    seconds, that is an error, shown with the last line of its terminal.
    """
    from sm.adapters.agent.profiles import resolve
    from sm.config.schema import AgentSettings
    from sm.personal.lifecycle import SessionOrder, begin, select_environment
    from sm.sessions.caller import identify
    from sm.setup.variables import describe_hidden, list_hidden

    caller = identify(machine.root, os.environ)
    named = AgentSettings(command=line, profile=provider)
    order = SessionOrder(
        provider=resolve(named, machine.settings.profiles).name,
        directory=directory.absolute(),
        command=line,
        name=name,
        prompt=read_text(prompt),
        parent=caller.name,
        pass_env=pass_env,
    )
    names = list_hidden(AgentSettings(command=line, pass_env=select_environment(machine, order)))
    if names and not caller.name:  # an agent has what it was given
        say(f"{describe_hidden(names)}, or give --pass-env", err=True)
    session = begin(machine, order)
    if as_json:
        from sm.cli.words import print_json
        from sm.views.family import read_row
        from sm.views.session_row import KIN, tell

        print_json(tell(read_row(session), KIN, time.time()))
    else:
        say(f"{session.name} {session.record.alias}".rstrip())
