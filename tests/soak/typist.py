"""A person at a terminal of their own, with a shell in it, who types for the agent."""

from __future__ import annotations

import os
import random
import termios
import time
from collections.abc import Mapping
from pathlib import Path

from sm.adapters.tmux import Tmux
from tests.helpers import wait_for
from tests.viewer import Viewer

PREFIX = "\x02"
KEY_S = 0.03
COUNTS_S = 3.0
"""A key that comes so soon after the person may pass for the terminal's own answer."""
SHELL = ("bash", "--norc", "--noprofile", "-i")


class Typist:
    """A shell in a terminal, and `sm attach` in that from time to time."""

    def __init__(self, tmux: Tmux, session: str, attach: str, env: Mapping[str, str], cwd: Path):
        """`attach` is the command line by which the session is entered."""
        self._tmux, self._session, self._attach = tmux, session, attach
        self.terminal = Viewer(list(SHELL), env=env, cwd=cwd)
        self.spans: list[tuple[float, float]] = []
        """From when to when they were at the keys, in seconds since 1970."""
        self._came_at = self._typed_at = 0.0

    @property
    def is_attached(self) -> bool:
        """Whether the terminal shows the session."""
        command = ("list-clients", "-F", "#{session_name}")
        return self._session in self._tmux.command(*command).split()

    def attach(self) -> None:
        """Enter the session, from the shell."""
        if self.is_attached:
            return
        self.terminal.type(self._attach + "\r")
        wait_for(lambda: self.is_attached, "the session in the person's terminal")
        self._came_at, self._typed_at = time.time(), 0.0

    def detach(self) -> None:
        """Go back to the shell."""
        if not self.is_attached:
            return
        self.note_span()
        self._typed_at = 0.0
        self.terminal.type(PREFIX + "d")
        wait_for(lambda: not self.is_attached, "the shell")

    def resize(self, size: tuple[int, int]) -> None:
        """Make the terminal that large."""
        termios.tcsetwinsize(self.terminal.fd, (size[1], size[0]))

    def type(self, text: str, chance: random.Random) -> None:
        """Type, as fast as a person may; `text` may be keys."""
        at = 0
        if not self._typed_at and time.time() > self._came_at + COUNTS_S:
            self._typed_at = time.time()
        while at < len(text):
            length = chance.choice((1, 1, 2, 5))
            self.terminal.type(text[at : at + length])
            at += length
            time.sleep(chance.random() * KEY_S)

    def note_span(self) -> None:
        """Put down the time since the first key as one at the keys, if there was one."""
        if self._typed_at:
            self.spans.append((self._typed_at, time.time()))

    def close(self) -> None:
        """Close the terminal's window."""
        self.terminal.close()


def environment(home: Path, more: Mapping[str, str]) -> dict[str, str]:
    """What the shell knows."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return kept | {"HOME": str(home), "TERM": "xterm-256color", "PS1": "$ ", **more}
