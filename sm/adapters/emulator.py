"""Finds out what a terminal has shown: a tmux of our own draws the bytes of the programs.

Full-screen programs draw in place and leave no history. So this module reads the screen again and
again while the bytes arrive, and remembers what has left the screen.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import tempfile
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from types import TracebackType

from sm.adapters.process import CommandError, ask
from sm.adapters.tmux import SIZE, join_commands, select_plain_environment
from sm.base.clock import Deadline
from sm.base.errors import SmError
from sm.base.nonce import make_nonce

LARGEST = (1000, 300)
HISTORY_LINES = 50_000
PIECE = 1024
"""Bytes between two looks at the screen: a little more than a program needs for one drawing."""
LOOKS = 512
"""The most looks at the screen; a long text is drawn in larger pieces."""
START_S = 10.0
LOOK_S = 0.002
ENOUGH = 3
"""Number of equal rows, or a third of all, from which on the screen goes on."""

READER = 'stty raw -echo && cat "$0"; rm -rf -- "$1"'
"""Program of the pane. At its end it removes the folder: the process that made it may be dead."""

PLACE = re.compile(rb"\x1b\[(\d{1,4})(?:;(\d{1,4}))?[Hr]|\x1b\[(\d{1,4})G")
"""Moves of the cursor (CUP, DECSTBM, CHA), because a person may have had a larger terminal."""
GOTO = re.compile(rb"\x1b\[(\d{0,4})(?:;\d{0,4})?H")


class TooSlowError(SmError):
    """The text was not drawn in time."""


def show(data: bytes, *, looked_at_from: int = 0, within_s: float = 10.0) -> list[str]:
    """Return the lines that a terminal has shown of `data`, oldest first, the last screen last.

    The bytes before `looked_at_from` are drawn, too. But lines that only a full-screen program has
    shown there are left out.

    Raises:
        TooSlowError: it takes longer than `within_s` seconds.
        SmError: tmux cannot be used.

    """
    if b"\r" not in data:  # not the output of a terminal, but a plain text
        data = data.replace(b"\n", b"\r\n")
    with Emulator(_size(data), Deadline(within_s)) as terminal:
        terminal.draw(data[:looked_at_from])
        lines = list(terminal.watch(_pieces(data[looked_at_from:])))
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _size(data: bytes) -> tuple[int, int]:
    columns, rows = SIZE
    for row, column, alone in PLACE.findall(data):
        rows, columns = max(rows, int(row or 0)), max(columns, int(column or 0), int(alone or 0))
    return (columns if columns <= LARGEST[0] else SIZE[0], rows if rows <= LARGEST[1] else SIZE[1])


def _pieces(data: bytes) -> Iterator[bytes]:
    """Yield `data` in pieces that end between two drawings, if these can be told apart.

    No control sequence is in two pieces.
    """
    length, start, frames = max(PIECE, len(data) // LOOKS), 0, _frames(data)
    while start < len(data):
        cut = _cut(data, frames, start, start + length)
        yield data[start:cut]
        start = cut


def _frames(data: bytes) -> list[int]:
    """Return where a program goes up again, and so starts to redraw its screen."""
    found, last = list[int](), 0
    for match in GOTO.finditer(data):
        row = int(match[1] or 1)
        if row < last:
            found.append(match.start())
        last = row
    return found


def _cut(data: bytes, frames: list[int], start: int, end: int) -> int:
    """Return the last start of a drawing up to `end`, else the next one, else of a sequence."""
    if end >= len(data):
        return len(data)
    after = bisect_right(frames, end)
    if after and frames[after - 1] > start:
        return frames[after - 1]
    if after < len(frames) and frames[after] < end + 4 * (end - start):
        return frames[after]
    cut = data.rfind(b"\x1b", start + 1, end)
    return cut if cut > 0 else end


class Emulator:
    """A tmux server with one pane, which gets bytes as from a program."""

    def __init__(self, size: tuple[int, int], deadline: Deadline) -> None:
        self._size, self._deadline = size, deadline
        self._folder = tempfile.TemporaryDirectory(prefix="sm-screen-")
        self._output, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)

    def __enter__(self) -> Emulator:
        """Start the server."""
        columns, rows = map(str, self._size)
        # It reads from a file descriptor of this process. So it ends with this process, however
        # that ends, and with it the pane and the server.
        source = f"/proc/{os.getpid()}/fd/{self._output}"
        reader = ("sh", "-c", READER, source, self._folder.name)
        try:
            self._tmux(
                ("start-server",),
                ("set-option", "-g", "history-limit", str(HISTORY_LINES)),
                ("set-option", "-s", "set-clipboard", "off"),
                ("new-session", "-d", "-x", columns, "-y", rows, *reader),
            )
        except SmError:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the server; nothing of it stays."""
        with contextlib.suppress(SmError):  # it has ended with its pane
            self._tmux(("kill-server",))
        self._remove()

    def _remove(self) -> None:
        os.close(self._pipe)
        os.close(self._output)
        self._folder.cleanup()

    def watch(self, pieces: Iterator[bytes]) -> Iterator[str]:
        """Draw the pieces; yield the lines that have left the screen, then the screen's lines.

        Lines of a full-screen program come after the terminal's own lines below them.
        """
        screen: list[str] = []
        whole = False
        for piece in pieces:
            was_whole, before = whole, screen
            whole, screen = self.draw(piece)
            if was_whole:
                yield from find_left_behind(before, screen if whole else [])
            elif whole:
                yield from self._take_history()
        yield from self._take_history()
        yield from screen

    def draw(self, data: bytes) -> tuple[bool, list[str]]:
        """Write the bytes; return whether a program has all of them, and the screen then."""
        mark = make_nonce(8)
        # This ends an open sequence, then names the pane. If the name is there, all bytes
        # before it were drawn. No text can pretend that.
        facts = "#{alternate_on} #{pane_title}"
        self._write(data + b"\x18\x1b\\\x1b]2;" + mark.encode() + b"\x07")
        while True:
            said = self._tmux(("display-message", "-p", facts), ("capture-pane", "-p", "-J"))
            line, _, screen = said.partition("\n")
            whole, _, title = line.partition(" ")
            if title == mark:
                return whole == "1", [row.rstrip() for row in screen.splitlines()]
            self._check_time()
            time.sleep(LOOK_S)

    def _take_history(self) -> list[str]:
        """Return the lines that have left the screen, and forget them here."""
        if self._tmux(("display-message", "-p", "#{history_size}")).strip() == "0":
            return []
        text = self._tmux(("capture-pane", "-p", "-J", "-S", "-", "-E", "-1"), ("clear-history",))
        return [row.rstrip() for row in text.splitlines()]

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            _, ready, _ = select.select((), (self._pipe,), (), 0.1)
            if ready:
                rest = rest[os.write(self._pipe, rest) :]
            else:
                self._check_time()

    def _check_time(self) -> None:
        if self._deadline.is_over:
            raise TooSlowError("it took too long to draw what the terminal has shown")

    def _tmux(self, *commands: tuple[str, ...]) -> str:
        # The path of a socket may have 100 characters at most, so it is relative to its folder.
        try:
            return ask(
                *("tmux", "-u", "-S", "tmux", "-f", os.devnull),
                *join_commands(*commands),
                cwd=Path(self._folder.name),
                env=select_plain_environment(),
                timeout_s=START_S,
            ).stdout
        except CommandError as error:
            raise SmError(f"tmux cannot draw it: {error.message}") from error


def find_left_behind(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the rows of `before` that have moved up and out of the screen `after`.

    Returns all rows if the screen shows something else now. A change in place (a spinner, a
    counter, the composer) is not among them.
    """
    written, shifts = sum(map(bool, before)), range(len(before) or 1)
    # Single rows are often equal by chance, but seldom several from the top on.
    best, shift = max((_same_from_top(before, after, shift), -shift) for shift in shifts)
    if best < min(ENOUGH, written):
        best, shift = max((_same(before, after, shift), -shift) for shift in shifts)
    if best < min(ENOUGH, written) and 3 * best < written:
        return list(before)
    return list(before[:-shift]) if shift else []


def _same_from_top(before: Sequence[str], after: Sequence[str], shift: int) -> int:
    """Count the equal written rows up to the first difference, moved up by `shift`."""
    moved = takewhile(lambda pair: pair[0] == pair[1], zip(before[shift:], after, strict=False))
    return sum(bool(old) for old, _ in moved)


def _same(before: Sequence[str], after: Sequence[str], shift: int) -> int:
    """Count all equal written rows, moved up by `shift`."""
    return sum(bool(old) and old == new for old, new in zip(before[shift:], after, strict=False))
