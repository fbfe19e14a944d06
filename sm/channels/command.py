"""Runs a person's own `notify_command` in a separate process, so that sm does not wait for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sm.adapters.process import run, spawn
from sm.adapters.surroundings import select_lasting_environment
from sm.base.errors import SmError
from sm.sessions.session import Session
from sm.store import events, journal
from sm.store.paths import Root

COMMAND_S = 10.0
"""How long a command and its children may take."""
LIMIT = 32 * 1024
"""Bytes of a text. A pipe holds so many before the command reads."""


def start(session: Session, text: str, command: str, deadline_s: float = COMMAND_S) -> None:
    """Run `command` in a shell, with one line of `text` as its standard input.

    If it fails, the journal says so.

    Raises:
        SmError: the command cannot be started.

    """
    reading, writing = os.pipe()
    try:
        line = " ".join(text.split()).encode("utf-8", "replace")[:LIMIT]
        os.write(writing, line + b"\n")  # not on a command line, which all users can read
        spawn(
            # The working directory may be an agent's, and hold modules of any name.
            *(sys.executable, "-P", "-m", __name__),
            *(str(session.root.path), session.name, command, str(deadline_s), str(reading)),
            log=session.dir.monitor_log,
            env=select_lasting_environment(),
            pass_fds=(reading,),
        )
    finally:
        os.close(reading)
        os.close(writing)


def main(root: str, session: str, command: str, deadline_s: str, reading: str) -> None:
    """Run the command to its end, and note a failure."""
    with os.fdopen(int(reading), "rb") as pipe:
        words = pipe.read()
    try:
        run("/bin/sh", "-c", command, stdin=words, timeout_s=float(deadline_s))
    except SmError as error:
        detail = f"notify_command: {error.message}"
        journal.record(Root(Path(root)).journal, events.Problem(session=session, text=detail))


if __name__ == "__main__":
    main(*sys.argv[1:])
