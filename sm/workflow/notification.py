"""Runs a person's own `notify_command` in a process of its own, so that nobody waits for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sm.adapters.process import run, spawn
from sm.adapters.surroundings import lasting_environment
from sm.errors import SmError
from sm.session.registry import Session
from sm.store import journal
from sm.store.paths import Root

COMMAND_S = 10.0
"""So long a command may take, with all that it starts."""
LIMIT = 32 * 1024
"""Bytes of a text; a pipe takes them before anybody reads."""


def start(session: Session, text: str, command: str, deadline_s: float = COMMAND_S) -> None:
    """Have `command` run by a shell, with a line of `text` on its standard input.

    What becomes of it the journal tells, if it fails.

    Raises:
        SmError: it cannot be started.

    """
    reading, writing = os.pipe()
    try:
        line = " ".join(text.split()).encode("utf-8", "replace")[:LIMIT]
        os.write(writing, line + b"\n")  # on no command line, which all can read
        spawn(
            # The folder that we are in may be an agent's, with modules of any name in it.
            *(sys.executable, "-P", "-m", __name__),
            *(str(session.root.path), session.name, command, str(deadline_s), str(reading)),
            log=session.dir.monitor_log,
            env=lasting_environment(),
            pass_fds=(reading,),
        )
    finally:
        os.close(reading)
        os.close(writing)


def main(root: str, session: str, command: str, deadline_s: str, reading: str) -> None:
    """Run it to its end, and note that it has failed."""
    with os.fdopen(int(reading), "rb") as pipe:
        words = pipe.read()
    try:
        run("/bin/sh", "-c", command, stdin=words, timeout_s=float(deadline_s))
    except SmError as error:
        detail = f"notify_command: {error.message}"
        journal.record(Root(Path(root)).journal, "problem", session, detail)


if __name__ == "__main__":
    main(*sys.argv[1:])
