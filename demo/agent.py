"""The demo's agent: a terminal program that behaves like an agent CLI, its model a script.

`agent.py PROMPT` does what the prompt says in the worktree of an issue, then what each message in
its composer says. Its only memory is git.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
import tty
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # -I leaves it out
from developer import Developer, StuckError
from records import Records

PROMPT = " ".join(sys.argv[1:])
if PROMPT.startswith("[sm] Task "):  # the command line of a program is not private
    PROMPT = Path(PROMPT.rpartition(": ")[2]).read_text(encoding="utf-8")


def show(text: str) -> None:
    """Show a text in place of the last line."""
    print(f"\r\x1b[2K{text}", end="", flush=True)


def say(text: str) -> None:
    """Tell what is being done, above the busy line."""
    show(f"● {text}\n✻ working…")


def ask() -> str:
    """Show the composer; returns what is pasted or typed into it, once Enter follows."""
    show("❯ ")
    typed, begin, end = b"", b"\x1b[200~", b"\x1b[201~"
    while not typed.endswith((b"\r", b"\n")) or typed.rfind(begin) > typed.rfind(end):
        key = os.read(0, 1)
        if key in (b"", b"\x04"):  # the terminal is closed, or Ctrl-D
            raise EOFError
        typed += key
    text = typed.replace(begin, b"").replace(end, b"").replace(b"\r", b"\n")
    return text.decode(errors="replace").strip() or ask()


class Here:
    """The developer's hands: the directory that this program runs in."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def run(self, *argv: str) -> str:
        """Run a program; returns what it printed."""
        say(f"$ {' '.join(argv)}")
        self._records.step(" ".join(argv))
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self._records.hear(done.stdout + done.stderr)
        if done.returncode:
            raise StuckError(f"'{' '.join(argv)}' failed: {' '.join(done.stderr.split())}")
        return done.stdout

    def read(self, path: str) -> str:
        """The text of a file."""
        self._records.step(path)
        text = Path(path).read_text()
        self._records.hear(text)
        return text

    def edit(self, path: str, text: str) -> None:
        """Write a file."""
        say(f"edit {path}")
        self._records.step(text)
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text)

    def signal(self, phase: str) -> None:
        """Write to the phase file."""
        say(phase)
        self._records.step(phase)
        Path(os.environ["PHASE_FILE"]).write_text(f"{phase}\n")

    def ponder(self) -> None:
        """Wait to be killed."""
        signal.pause()


def main() -> None:
    """Do as the prompt says, then as every message says, until Ctrl-C or Ctrl-D."""
    before = termios.tcgetattr(0)
    tty.setcbreak(0)
    show("\x1b[?2004h")  # from here on pastes are marked as such
    records = Records()
    developer, message = Developer(PROMPT, Here(records)), PROMPT
    try:
        while True:
            show(f"> {message.partition(chr(10))[0]}\n")
            records.hear(message)
            developer.hear(message)
            message = ask()
    except (EOFError, KeyboardInterrupt):
        show("\x1b[?2004l")
        termios.tcsetattr(0, termios.TCSANOW, before)


if __name__ == "__main__":
    main()
