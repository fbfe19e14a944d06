"""`sm handoff`: called by an agent on itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.base.errors import StateError, UsageError
from sm.base.output import say
from sm.cli.options import pass_machine

if TYPE_CHECKING:
    from sm.sessions.machine import Machine


@click.command("handoff")
@click.argument("file", type=click.Path(path_type=Path))
@pass_machine
def command(machine: Machine, file: Path) -> None:
    """Replace your own context by FILE, a handoff document, when the current turn ends.

    Self-directed context rotation, for an agent in a session of sm. FILE is the path to the
    document. Write into it all that the next context has to know, then call this as the last thing
    of your turn: the context is cleared, and the new one is told to read FILE and to go on. The
    last call wins.
    """
    from sm.context import rotation_files
    from sm.sessions.caller import VARIABLE, identify

    if not os.environ.get(VARIABLE):
        raise UsageError(
            f"{VARIABLE} not set. sm handoff can only be called from within a session."
        )
    try:
        if not machine.root.path.is_dir():
            raise UsageError(
                f"cannot reach the session: there is no '{machine.root.path}' from here"
            )
        session = identify(machine.root, os.environ).session
    except StateError as error:
        raise UsageError(f"cannot reach the session: {error.message}") from error
    assert session is not None, "one that the environment names is found, or refused"
    rotation_files.schedule(session, session.profile, rotation_files.find_document(file))
    say("Handoff scheduled — will execute after current turn completes")
