"""What a session's branch changes: read from git when a person asks, within bounds.

A branch is what an agent has made of it, so a file may be huge, binary, or have any name.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from sm.adapters.process import Beginning
from sm.base.text import printable
from sm.sessions.session import IssueSession

BYTES = 1_000_000
"""Of a patch that are read."""
LINES = 3000
"""Lines of it that are shown."""
WIDEST = 500
"""Characters of a line of it."""
FILES = 300
"""Files that the overview names."""
GIT_S = 10.0
"""Git may take so long for each of both."""
HEADS = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "similarity", "rename ")


class Line(Struct, frozen=True):
    """A line of a patch. `kind` is `add`, `del`, `head`, `hunk` or `same`."""

    kind: str
    text: str


class Patch(Struct, frozen=True):
    """What the branch changes since it left the primary branch.

    `stat` is how git gives an overview of it. `left_out` says what is not shown, '' for nothing.
    """

    stat: str
    lines: tuple[Line, ...]
    left_out: str = ""


def read_patch(session: IssueSession) -> Patch:
    """What its branch changes, also what is not pushed yet.

    Raises:
        SmError: git cannot tell.

    """
    base = f"refs/remotes/{session.record.remote}/{session.record.base}"
    git = session.project.git.at(session.worktree)
    found = git.read_diff(base, limit=BYTES, timeout_s=GIT_S)
    stat = git.read_diff_stat(base, files=FILES, limit=BYTES, timeout_s=GIT_S)
    overview = printable(stat.data.decode("utf-8", "replace")) if stat.is_whole else ""
    return make_patch(found, overview)


def make_patch(found: Beginning, stat: str) -> Patch:
    """Make it of what git has said."""
    # Only LF ends a line: `splitlines` would cut at U+2028, and at a form feed.
    lines = found.data.decode("utf-8", "replace").removesuffix("\n").split("\n")
    shown = tuple(_sort_lines(lines[:LINES])) if found.data else ()
    return Patch(stat, shown, _tell_left(found, len(lines) - LINES))


def _tell_left(found: Beginning, more: int) -> str:
    if found.is_late:
        return f"Git was stopped after {GIT_S:g} s: what comes behind this is left out."
    if not found.is_whole:
        return f"Only the first {BYTES // 1_000_000} MB of the changes were read."
    return f"{more:,} more lines are left out." if more > 0 else ""


def _sort_lines(lines: list[str]) -> Iterator[Line]:
    for line in lines:
        cut = " …" if len(line) > WIDEST else ""
        yield Line(_find_kind(line), printable(line[:WIDEST]) + cut)


def _find_kind(line: str) -> str:
    if line.startswith(HEADS):
        return "head"
    return {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "same")
