"""A person's own terminal, as a tmux server of its own shows it."""

from __future__ import annotations

import secrets
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.helpers import wait_for


class Screen:
    """A terminal of a fixed size, with a program in it."""

    def __init__(
        self, argv: list[str], env: Mapping[str, str], cwd: Path, size: tuple[int, int]
    ) -> None:
        self._socket = f"sm-person-{secrets.token_hex(4)}"
        self._env = {name: value for name, value in env.items() if not name.startswith("TMUX")}
        width, height = map(str, size)
        self._tmux(
            *("-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, "-c", str(cwd)),
            f"{shlex.join(argv)}; printf 'ended with %s' $?; cat",
        )

    def _tmux(self, *words: str) -> str:
        return subprocess.run(
            ["tmux", "-L", self._socket, *words],
            env=self._env,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def show(self, *, colours: bool = False) -> str:
        """What is to be seen."""
        return self._tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def await_text(self, text: str) -> str:
        """Wait until that is to be seen; return all that is."""
        try:
            wait_for(lambda: text in self.show(), f"'{text}'")
        except BaseException:
            print(self.show())
            raise
        return self.show()

    def press(self, *keys: str) -> None:
        """Press keys, by the names that tmux has for them."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a text."""
        self._tmux("send-keys", "-l", text)

    def resize(self, width: int, height: int) -> None:
        """Give the terminal another size."""
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def close(self) -> None:
        """Close the terminal."""
        subprocess.run(
            ["tmux", "-L", self._socket, "kill-server"], capture_output=True, check=False
        )


@contextmanager
def a_screen(
    argv: list[str], env: Mapping[str, str], cwd: Path, size: tuple[int, int] = (80, 24)
) -> Iterator[Screen]:
    """Open such a terminal, and close it."""
    made = Screen(argv, env, cwd, size)
    try:
        yield made
    finally:
        made.close()
