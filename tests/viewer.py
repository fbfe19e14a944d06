"""A person's own terminal, with a program in it: for clients of tmux of any size."""

from __future__ import annotations

import os
import pty
import subprocess
import termios
import threading
from collections.abc import Mapping
from pathlib import Path

from sm.adapters.tmux import Tmux

KEPT = 20_000


class Viewer:
    """A person's terminal of `size`, with `tmux attach` in it."""

    def __init__(
        self,
        argv: list[str],
        size: tuple[int, int] = (80, 24),
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.fd, slave = pty.openpty()
        termios.tcsetwinsize(slave, (size[1], size[0]))
        if env is None:
            env = {name: value for name, value in os.environ.items() if name != "TMUX"}
            env["TERM"] = "xterm-256color"
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            cwd=cwd,
        )
        os.close(slave)
        self._shown = bytearray()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        """Take in all that is shown: a terminal that does not would keep its program waiting."""
        while True:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return
            if not data:
                return
            self._shown = (self._shown + data)[-KEPT:]

    @property
    def shown(self) -> str:
        """The last bytes that the program has written."""
        return self._shown.decode(errors="replace")

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def has_ended(self) -> bool:
        """Whether the program has ended."""
        return self.process.poll() is not None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.fd)


def attached(tmux: Tmux, viewer: Viewer, session: str) -> bool:
    assert not viewer.has_ended(), "the client ended at once"
    return session in tmux.command("list-client", "-F", "#{session_name}").split()
