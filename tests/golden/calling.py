"""Calls `sm` in this process, and writes down what it has said."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from typing import NamedTuple
from unittest.mock import patch

from sm.__main__ import run


class Said(NamedTuple):
    """What a command has printed, and its exit code."""

    code: int
    out: str
    err: str


class _Stream(TextIOWrapper):
    """A file that may say that it is a terminal."""

    is_terminal = False

    def isatty(self) -> bool:
        """Say what was wanted."""
        return self.is_terminal


@contextlib.contextmanager
def _captured(*, is_terminal: bool) -> Iterator[Sequence[TextIOWrapper]]:
    """Have stdout and stderr go to files, also those of programs that are started."""
    with contextlib.ExitStack() as stack:
        files = []
        for number, name in ((1, "stdout"), (2, "stderr")):
            kept = os.dup(number)
            stack.callback(os.close, kept)
            file = _Stream(stack.enter_context(tempfile.TemporaryFile()), "utf-8", newline="")
            file.is_terminal = is_terminal
            os.dup2(file.fileno(), number)
            stack.callback(os.dup2, kept, number)
            stack.enter_context(patch.object(sys, name, file))
            files.append(file)
        yield files


def call(argv: Sequence[str], *, columns: int = 0, stdin: str = "") -> Said:
    """Call `sm`; on a terminal of so many `columns` unless that is 0."""
    more = {"COLUMNS": str(columns), "TERM": "xterm-256color"} if columns else {}
    with (
        patch.dict(os.environ, more),
        patch.object(sys, "stdin", TextIOWrapper(io.BytesIO(stdin.encode()))),
        _captured(is_terminal=bool(columns)) as files,
    ):
        code = run(list(argv))
        said = []
        for file in files:
            file.flush()
            file.seek(0)
            said.append(file.read())
    return Said(code, *said)


def write_down(argv: Sequence[str], said: Said) -> str:
    """Return a command with what it has said, as a part of a golden file."""
    text = f"$ sm {shlex.join(argv)}\n{said.out}"
    text += "" if text.endswith("\n") else "⏎\n"
    text += "".join(f"! {line}\n" for line in said.err.splitlines())
    return text + (f"= {said.code}\n" if said.code else "")
