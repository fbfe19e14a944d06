"""What a session's terminal or its monitor said: the end of it, and what is added to it."""

from __future__ import annotations

import codecs
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sm.errors import SmError
from sm.session.registry import AdHocSession
from sm.session.targets import address
from sm.store.files import open_guarded
from sm.store.paths import SessionDir, session_name
from sm.text import CONTROL, LINE_BREAK, strip_ansi
from sm.workflow.context import Context

BLOCK = 64 * 1024
LOOK_S = 0.2
"""Pause between two looks at a file that is followed."""

LINE = re.compile(r"[^\n]*\n|[^\n]+")
LINE_ENDS = re.compile(r"(?<!\r)\r++\n")
BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")


def log_file(ctx: Context, issue: int, *, monitor: bool = False) -> Path:
    """The transcript of the issue's session, or what its monitor said.

    Raises:
        SmError: there is none.

    """
    project = ctx.project.name
    directory = ctx.root.session(session_name(project, issue))
    path = directory.monitor_log if monitor else _transcript(ctx, directory, issue)
    if path.exists():
        return path
    if directory.identity.exists():
        what = "monitor" if monitor else "agent"
        raise SmError(f"the {what} of issue #{issue} of '{project}' has said nothing yet")
    raise SmError(
        f"issue #{issue} of '{project}' has no session, and nothing of one is left: "
        f"see sm trace {project} {issue}"
    )


def _transcript(ctx: Context, directory: SessionDir, issue: int) -> Path:
    """As `IssueSession.transcript`, also where the session has ended."""
    own = directory.transcript
    return own if own.exists() else ctx.root.transcript(ctx.project.name, issue)


def ad_hoc_file(session: AdHocSession, *, monitor: bool = False) -> Path:
    """The same for a session that works on no issue.

    Raises:
        SmError: there is none.

    """
    path = session.dir.monitor_log if monitor else session.transcript
    if path.exists():
        return path
    what = "monitor" if monitor else "agent"
    raise SmError(f"the {what} of '{address(session)}' has said nothing yet")


def is_over(ctx: Context, issue: int) -> bool:
    """Whether the issue has no session (any more)."""
    return not ctx.root.session(session_name(ctx.project.name, issue)).identity.exists()


def clean(text: str) -> str:
    """`text` without what only a terminal understands, long gaps closed."""
    plain = LINE_BREAK.sub("\n", LINE_ENDS.sub("\n", strip_ansi(text)))
    return BLANK_LINES.sub("\n\n", CONTROL.sub("", plain))


def last_lines(path: Path, count: int, *, end: int, raw: bool = False) -> str:
    """The last `count` lines before byte `end`; of a cleaned transcript those that are left."""
    wanted = BLOCK
    while count > 0:
        start = max(0, end - wanted)
        text = _read(path, start, end).decode("utf-8", "surrogateescape" if raw else "replace")
        lines = LINE.findall(text if raw else clean(text))
        if start == 0 or len(lines) > count:
            return "".join(lines[-count:])
        wanted *= 4
    return ""


def _read(path: Path, start: int, end: int) -> bytes:
    data = b""
    with open_guarded(path, os.O_RDONLY) as fd:
        while chunk := os.pread(fd, end - start - len(data), start + len(data)):
            data += chunk
    return data


def follow(
    path: Path, is_over: Callable[[], bool], *, start: int, raw: bool = False
) -> Iterator[str]:
    """What is written to `path` behind byte `start` from now on, until `is_over` and all is read.

    A file that is replaced or cut short is followed from its beginning.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape" if raw else "replace")
    pending = ""
    for data in _chunks(path, is_over, start):
        pending += decoder.decode(data)
        # An escape sequence may come in two pieces, so only whole lines go out while more comes.
        cut = len(pending) if raw or not data else pending.rfind("\n") + 1
        out, pending = pending[:cut], pending[cut:]
        if out:
            yield out if raw else clean(out)


def _chunks(path: Path, is_over: Callable[[], bool], position: int) -> Iterator[bytes]:
    """What comes, b'' before each pause; the file is kept open, so its removal loses nothing."""
    while path.exists():
        with open_guarded(path, os.O_RDONLY) as fd:
            replaced = False
            while not replaced:
                over, replaced = is_over(), _is_replaced(path, fd)  # asked before the last look
                if os.fstat(fd).st_size < position:
                    position = 0
                while data := os.pread(fd, BLOCK, position):
                    position += len(data)
                    yield data
                yield b""
                if over:
                    return
                if not replaced:
                    time.sleep(LOOK_S)
        position = 0


def _is_replaced(path: Path, fd: int) -> bool:
    try:
        return not os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False
