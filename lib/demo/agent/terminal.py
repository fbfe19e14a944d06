"""What any agent CLI does with its terminal: a composer while idle, a busy line while at work."""

from __future__ import annotations

import codecs
import os
import re
import sys
import termios
from collections.abc import Iterator
from typing import Self

GLYPH = "❯ "
BUSY = "✻ working…"
SHOWN_LINES = 8
"""Of a prompt; all of it is known anyway."""

PASTES_ON, PASTES_OFF = "\x1b[?2004h", "\x1b[?2004l"
PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
CLEAR_LINE = "\r\x1b[2K"
DIM, PLAIN = "\x1b[2m", "\x1b[0m"

ENTER, END_OF_FILE = "\r", "\x04"
BACKSPACES, LINE_BREAKS_AND_TABS = ("\x7f", "\b"), ("\n", "\t")

KEY = re.compile(r"\x1b\[[0-9;]*[~A-Za-z]|.", re.DOTALL)
UNFINISHED = re.compile(r"\x1b(\[[0-9;]*)?")
"""The beginning of an escape sequence whose rest is on its way."""


class Terminal:
    """The terminal that this program runs in. Ctrl-C interrupts, Ctrl-D ends the input."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._keys = self._read_keys()

    def __enter__(self) -> Self:
        """Keys arrive one by one, unechoed, Enter as it is; pastes are marked as such."""
        self._before = termios.tcgetattr(self._fd)
        mode = termios.tcgetattr(self._fd)
        mode[0] &= ~(termios.ICRNL | termios.IXON)
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self._fd, termios.TCSANOW, mode)
        self._write(PASTES_ON)
        return self

    def __exit__(self, *_: object) -> None:
        self._write(PASTES_OFF + CLEAR_LINE)
        termios.tcsetattr(self._fd, termios.TCSANOW, self._before)

    def say(self, text: str) -> None:
        """Show what is being done, above the busy line."""
        self._write(f"{CLEAR_LINE}● {text}\n{BUSY}")

    def show_prompt(self, text: str) -> None:
        """Show what was said to the agent, its beginning only if it is long."""
        lines = text.splitlines()
        more = len(lines) - SHOWN_LINES
        shown = [*lines[:SHOWN_LINES], *([f"… {more} more lines"] if more > 0 else [])]
        quoted = "".join(f"{DIM}> {line}{PLAIN}\n" for line in shown)
        self._write(f"{CLEAR_LINE}\n{quoted}\n{BUSY}")

    def think(self) -> None:
        """Stay busy for ever; whatever is typed meanwhile is lost."""
        while self._read():
            pass

    def ask(self) -> str:
        """Show the composer until something is submitted; returns that.

        Raises:
            EOFError: the terminal is closed, or Ctrl-D was typed into an empty composer.

        """
        draft, in_paste = "", False
        self._draw(draft)
        for key in self._keys:
            if key in (PASTE_BEGINS, PASTE_ENDS):
                in_paste = key == PASTE_BEGINS
            elif key == ENTER and not in_paste:
                if draft.strip():
                    return draft
            elif key == END_OF_FILE and not draft:
                break
            elif key in BACKSPACES:
                draft = draft[:-1]
            elif key in LINE_BREAKS_AND_TABS or key.isprintable():
                draft += key
            if not in_paste:
                self._draw(draft)
        raise EOFError

    def _draw(self, draft: str) -> None:
        first, _, rest = draft.partition("\n")
        self._write(f"{CLEAR_LINE}{GLYPH}{first[:60]}{' …' if rest or first[60:] else ''}")

    def _read_keys(self) -> Iterator[str]:
        """Single characters, and whole escape sequences."""
        pending = ""
        while data := self._read():
            pending += data
            while pending and not UNFINISHED.fullmatch(pending):
                found = KEY.match(pending)
                assert found is not None, "any character is a key"
                pending = pending[found.end() :]
                yield found.group()

    def _read(self) -> str:
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # the terminal is gone
            return ""
        # Nothing but the end of the input may look like it: half a character becomes no text yet.
        return self._decoder.decode(data) or (self._read() if data else "")

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
