"""A person's own terminal, with a program in it: for clients of tmux of any size."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import termios

from sm.adapters.tmux import Tmux


class Viewer:
    """A person's terminal of `size`, with `tmux attach` in it."""

    def __init__(self, argv: list[str], size: tuple[int, int] = (80, 24)) -> None:
        master, slave = pty.openpty()
        self._master = master
        termios.tcsetwinsize(slave, (size[1], size[0]))
        env = {name: value for name, value in os.environ.items() if name != "TMUX"}
        env["TERM"] = "xterm-256color"
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        os.close(slave)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def has_ended(self) -> bool:
        """Whether it has; reads what it shows meanwhile."""
        while select.select([self._master], [], [], 0)[0]:
            try:
                if not os.read(self._master, 65536):
                    break
            except OSError:
                break
        return self.process.poll() is not None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


def attached(tmux: Tmux, viewer: Viewer, session: str) -> bool:
    assert not viewer.has_ended(), "the client ended at once"
    return session in tmux.command("list-client", "-F", "#{session_name}").split()
