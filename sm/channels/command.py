"""Runs a person's own `notify_command` in a process of its own: sm does not wait for it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from msgspec import Struct

from sm.adapters.environment import select_lasting_environment
from sm.adapters.process import CommandError, CommandTimeoutError, run, spawn
from sm.base.act_guard import before_act
from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.base.redact import hide_address, redact
from sm.channels.channel import Channel, Word
from sm.sessions import fence, registry
from sm.sessions import plan as plans
from sm.sessions.history import Receipt
from sm.sessions.session import Session
from sm.store import events, journal
from sm.store.paths import Root

COMMAND_S = 10.0
"""Time that a command and its children may take, in seconds."""
LIMIT = 32 * 1024
"""Limit of a text, in bytes: what a pipe holds before the command reads."""
ALERTED = "alerted"
"""Row of a receipt that says that the command was run."""


class Command(Channel, Struct, frozen=True):
    """Command of a person, which is told of everything in one line."""

    session: Session
    command: str

    def tell(self, word: Word) -> None:
        """Have it run, once for each word; a failure is noted, and holds nothing up.

        It is run again only if this process dies before it could say that it was run.
        """
        key = f"{ALERTED}:{word.id}"
        if not word.shortly or plans.has_receipt(self.session.dir, key):
            return
        try:
            start(self.session, f"{self.session.address} {word.shortly}", self.command)
        except SmError as error:
            _note(self.session.root, self.session.name, error)
        plans.add_receipt(self.session.dir, Receipt(time.time(), key, ALERTED))

    ask = remind = tell

    def reaches(self, need: NeedKind) -> bool:
        """Return True: it is told of everything."""
        return bool(need)


def open_command(session: Session) -> Command | None:
    """Return the command of the machine's settings, None if there is none."""
    command = session.settings.notify_command
    return Command(session, command) if command else None


def start(session: Session, text: str, command: str, deadline_s: float = COMMAND_S) -> None:
    """Run `command` in a shell, with one line of `text` as its standard input.

    If it fails, the journal says so.

    Raises:
        SmError: the command cannot be started.

    """
    log = session.dir.monitor_log
    start_aside(session.root, session.name, text, command, log=log, deadline_s=deadline_s)


def start_aside(
    root: Root, name: str, text: str, command: str, *, log: Path, deadline_s: float = COMMAND_S
) -> None:
    """Start the command about a session that may be none of this machine, or about none ('').

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
            *(str(root.path), name, command, str(deadline_s), str(reading)),
            log=log,
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
        # The machine may have been asleep since the command was started.
        with fence.guard(registry.find(Root(Path(root)), session) if session else None):
            before_act()
        run("/bin/sh", "-c", command, stdin=words, timeout_s=float(deadline_s))
    except SmError as error:
        _note(Root(Path(root)), session, error)


def _note(root: Root, session: str, error: SmError) -> None:
    detail = f"notify_command: {_explain(error)}"
    journal.record(root.journal, events.Problem(session=session, text=detail))


def _explain(error: SmError) -> str:
    """Say what went wrong without the command, as its address is a secret as a rule."""
    if isinstance(error, CommandError):
        said = (error.result.stderr or error.result.stdout).strip().splitlines()
        return f"it failed ({error.result.code}): {hide_address(said[-1]) if said else 'no word'}"
    if isinstance(error, CommandTimeoutError):
        return "it " + error.message.rpartition("' ")[2]
    return redact(error.message)


if __name__ == "__main__":
    main(*sys.argv[1:])
