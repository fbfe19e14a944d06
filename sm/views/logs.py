"""Logs of a session's terminal or its monitor: the last lines, and what is added to them."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sm.adapters.tmux import MissingPaneError, NoServerError
from sm.base.clock import Deadline
from sm.base.errors import SmError
from sm.base.issue_id import IssueId, spell
from sm.base.text import CONTROL, LINE_BREAK, strip_ansi
from sm.sessions import agent, terminal
from sm.sessions.project import Project
from sm.sessions.session import AdHocSession, AnySession
from sm.store.files import open_guarded
from sm.store.paths import Root, SessionDir, name_session

BLOCK = 64 * 1024
LOOK_S = 0.2
"""Pause between two looks at a file that is followed, in seconds."""

DRAWN_BYTES = 32 * 1024 * 1024
"""Bytes at the end of a log that are drawn: what a full-screen program showed earlier is gone."""
DRAW_S = 10.0

LINE = re.compile(r"[^\n]*\n|[^\n]+")
LINE_ENDS = re.compile(r"(?<!\r)\r++\n")
UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]P^_X][^\x07\x1b\n]*|[ -/]*)\Z")
"""Beginning of an escape sequence at the end of a text, whose rest is still to come."""
SEQUENCE = 256
"""Characters before a place in a log in which an escape sequence around it must begin."""
BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")


def find_log_file(project: Project, issue: IssueId, *, monitor: bool = False) -> Path:
    """Find the log of the issue's session or of the last one that has ended: terminal or monitor.

    Raises:
        SmError: there is none.

    """
    directory = project.root.session(name_session(project.name, issue))
    path = directory.monitor_log if monitor else _find_terminal_log(project, directory, issue)
    if path.exists():
        return path
    if directory.identity.exists():
        what = "monitor" if monitor else "agent"
        raise SmError(
            f"the {what} of issue {spell(issue)} of '{project.name}' has said nothing yet"
        )
    trace = f"sm trace {project.name} {issue}"
    return find_kept_file(
        project.root,
        directory.path.name,
        f"issue {spell(issue)} of '{project.name}' has no session, and nothing of one is left: "
        f"see {trace}",
        monitor=monitor,
    )


def find_kept_file(root: Root, name: str, otherwise: str = "", *, monitor: bool = False) -> Path:
    """Find the terminal log of the last session of that id, which has ended.

    Raises:
        SmError: there is none (any more), or what its monitor said is asked for.

    """
    kept = [] if monitor else terminal.list_kept_logs(root, name)
    if kept:
        return kept[-1]
    raise SmError(
        otherwise or f"session '{name}' has ended, and nothing of it is left: see sm trace {name}"
    )


def _find_terminal_log(project: Project, directory: SessionDir, issue: IssueId) -> Path:
    """Return where the terminal of the issue is logged, also if its session has ended."""
    own = directory.terminal_log
    return own if own.exists() else project.root.terminal_log(project.name, issue)


def find_ad_hoc_file(session: AdHocSession, *, monitor: bool = False) -> Path:
    """Find the log of a session that works on no issue, as `find_log_file`.

    Raises:
        SmError: there is none.

    """
    path = session.dir.monitor_log if monitor else session.terminal_log
    if path.exists():
        return path
    what = "monitor" if monitor else "agent"
    raise SmError(f"the {what} of '{session.address}' has said nothing yet")


def is_over(project: Project, issue: IssueId) -> bool:
    """Whether the issue has no session (any more)."""
    return not project.root.session(name_session(project.name, issue)).identity.exists()


def clean(text: str) -> str:
    """Return `text` without what only a terminal understands, with long gaps closed."""
    whole = UNFINISHED.sub("", strip_ansi(text))
    plain = LINE_BREAK.sub("\n", LINE_ENDS.sub("\n", whole))
    return BLANK_LINES.sub("\n\n", CONTROL.sub("", plain))


def read_shown_lines(path: Path, count: int, *, end: int) -> str:
    """Return the last `count` lines that the terminal showed before byte `end`, as each was last.

    What was drawn over, such as a spinner, is left out. If a log takes too long to draw, the text
    is only cleaned.
    """
    if count < 1:
        return ""
    data = _read(path, max(0, end - DRAWN_BYTES), end)
    lines = _draw(data, count)
    if lines is None:
        return read_last_lines(path, count, end=end)
    return "".join(f"{line}\n" for line in lines[-count:])


def read_screen_lines(session: AnySession, count: int) -> str:
    """Return the last lines of its screen that are not blank; without a screen, of its log."""
    known = agent.load(session.dir)
    if known is None or not agent.is_alive(session.dir):
        return terminal.read_tail(session.terminal_log, count)
    try:
        shown = clean(session.tmux.capture(known.pane_id))
    except (MissingPaneError, NoServerError):
        return ""
    lines = [line.rstrip() for line in shown.split("\n")]
    return "\n".join([line for line in lines if line][-count:])


def _draw(data: bytes, count: int) -> list[str] | None:
    """Return the lines that were shown, at least `count` if there are; None if it takes too long.

    A full-screen program is watched over the end of the log alone, and over more of it only while
    that shows too few lines.
    """
    from sm.adapters.emulator import TooSlowError, show

    deadline, wanted, lines = Deadline(DRAW_S), BLOCK, None
    with contextlib.suppress(TooSlowError):
        while lines is None or len(lines) < count:
            start = max(0, len(data) - wanted)
            drawn = show(data, looked_at_from=start, within_s=deadline.left_s)
            lines = BLANK_LINES.sub("\n\n", "\n".join(drawn)).strip("\n").split("\n")
            if start == 0:
                break
            wanted *= 4
    return lines


def ends_within_line(path: Path, end: int) -> bool:
    """Whether the log ends within a line of plain text, so that the next output continues it."""
    last = _read(path, max(0, end - BLOCK), end).rpartition(b"\n")[2]
    return bool(last) and b"\x1b" not in last


def read_last_lines(path: Path, count: int, *, end: int, raw: bool = False) -> str:
    """Return the last `count` lines before byte `end`; of a cleaned log, those that are left."""
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
    """Yield what is written to `path` after byte `start`, until `is_over` and all is read.

    A file that is replaced or cut short is followed from its beginning.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape" if raw else "replace")
    pending = "" if raw else _read_unfinished(path, start)
    for data in _chunks(path, is_over, start):
        pending += decoder.decode(data)
        # An escape sequence may come in two pieces, so only whole lines go out while more comes.
        cut = len(pending) if raw else _find_end(pending) if not data else pending.rfind("\n") + 1
        out, pending = pending[:cut], pending[cut:]
        if out:
            yield out if raw else clean(out)


def _find_end(pending: str) -> int:
    """Return where a text may be cut: an escape sequence stays whole."""
    found = UNFINISHED.search(pending, max(0, len(pending) - SEQUENCE))
    return found.start() if found else len(pending)


def _read_unfinished(path: Path, end: int) -> str:
    """Return the beginning of an escape sequence just before byte `end`."""
    try:
        before = _read(path, max(0, end - SEQUENCE), end).decode("utf-8", "replace")
    except FileNotFoundError:  # its session has ended meanwhile
        return ""
    found = UNFINISHED.search(before)
    return found[0] if found else ""


def _chunks(path: Path, is_over: Callable[[], bool], position: int) -> Iterator[bytes]:
    """Yield new bytes, b'' before each pause; the file stays open, so its removal loses nothing."""
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
