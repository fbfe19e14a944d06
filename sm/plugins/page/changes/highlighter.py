"""Colours of code, by a process of its own that is ended if it takes too long."""

from __future__ import annotations

import contextlib
import selectors
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

from sm.helper.lines import Lines, WireError, decode_line, encode_line
from sm.plugins.page.changes import lexing
from sm.plugins.page.changes.lexing import CodeText, Coloured

LONGEST_S, START_S = 1.5, 5.0
"""Time for one text, in seconds, and for the start of the process."""
MOST = 100_000
"""Characters of a text above which it stays without colours."""
WIDEST = 1000
"""Characters of a line above which its text stays without colours."""
ANSWER = 8 * lexing.LIMIT
PIECE = 65_536


PROGRAM = (sys.executable, "-Im", lexing.__name__)


class Highlighter:
    """Colours code. Its process starts with the first text, and ends with this object."""

    def __init__(self, program: Sequence[str] = PROGRAM) -> None:
        """Start nothing yet."""
        self._program = program
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = lambda: None

    def colour(self, name: str, lines: list[str]) -> list[Markup]:
        """Return the lines as HTML, coloured if that is known for a file of that name."""
        text = "\n".join(lines)
        if len(text) <= MOST and all(len(line) <= WIDEST for line in lines):
            with self._lock:
                found = self._ask(CodeText(name, text))
            if found and found.lines and len(found.lines) == len(lines):
                return [Markup(line) for line in found.lines]  # noqa: S704 - Pygments escapes
        return [escape(line) for line in lines]

    def _ask(self, code: CodeText) -> Coloured | None:
        line = encode_line(code)
        if len(line) > lexing.LIMIT:
            return None
        with contextlib.suppress(OSError, WireError):
            process, patience_s = self._process, LONGEST_S
            if process is None:
                process, patience_s = self._start(), START_S
            self._process = process
            assert process.stdin
            process.stdin.write(line)
            process.stdin.flush()
            return self._read(process, patience_s)
        self.close()
        return None

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(  # noqa: S603 - argv only
            self._program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._end = weakref.finalize(self, _end, process)
        return process

    def _read(self, process: subprocess.Popen[bytes], patience_s: float) -> Coloured:
        assert process.stdout
        lines, until = Lines(ANSWER), time.monotonic() + patience_s
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not (line := lines.take()):
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise WireError("it takes too long")
                piece = process.stdout.read1(PIECE)  # type: ignore[attr-defined]
                if not piece:
                    raise WireError("it has ended")
                lines.add(piece)
        return decode_line(line, Coloured)

    def close(self) -> None:
        """End the process."""
        self._process = None
        self._end()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
