"""Change on a session's branch: read from git when a person asks, within bounds.

A branch is what an agent has made of it, so a file may be huge, binary, or have any name.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from sm.adapters.process import Beginning
from sm.base.text import format_count, printable
from sm.views.place import Bounds, Place

BYTES = 1_000_000
"""Bytes of a patch that are read."""
LINES = 3000
"""Lines of a patch that are shown."""
WIDEST = 500
"""Characters of a line that are shown."""
FILES = 300
"""Files that the overview names."""
STAT = 40
"""Signs for the lines of one file in the overview."""
GIT_S = 10.0
"""Time that git may take for the patch, and for the overview, in seconds."""
HEADS = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "similarity", "rename ")


class Line(Struct, frozen=True):
    """A line of a patch. `kind` is `add`, `del`, `head`, `hunk` or `same`."""

    kind: str
    text: str


class Patch(Struct, frozen=True):
    """Change on the branch since it left the primary branch.

    `stat` is how git gives an overview of it. `left_out` says what is not shown, '' for nothing.
    """

    stat: str
    lines: tuple[Line, ...]
    left_out: str = ""


def read_patch(place: Place, head: str | None = None) -> Patch:
    """Read what a session's branch changes, also what is not pushed yet.

    With `head`, only what its pull request lacks, which is at that commit.

    Raises:
        SmError: git cannot tell.

    """
    found = place.read_change(head, Bounds(BYTES, FILES, GIT_S))
    stat = found.stat
    overview = printable(stat.data.decode("utf-8", "replace")) if stat.is_whole else ""
    return make_patch(found.patch, overview)


def make_patch(found: Beginning, stat: str) -> Patch:
    """Make a patch of git's output."""
    # Only LF ends a line: `splitlines` would cut at U+2028, and at a form feed.
    lines = found.data.decode("utf-8", "replace").removesuffix("\n").split("\n")
    shown = tuple(_sort_lines(lines[:LINES])) if found.data else ()
    return Patch(stat, shown, _tell_left(found, len(lines) - LINES))


def draw_stat(patch: bytes) -> str:
    """Draw the overview of a patch as `git diff --stat` does: how much changes in each file."""
    files: dict[str, list[int]] = {}
    counts, is_hunk = [0, 0], False
    for line in patch.split(b"\n"):
        if line.startswith(b"diff --git "):
            name = line.rpartition(b" b/")[2] or line[len(b"diff --git ") :]
            shown = printable(name.decode("utf-8", "replace"))[:WIDEST]
            counts, is_hunk = files.setdefault(shown, [0, 0]), False
        elif line.startswith(b"@@"):
            is_hunk = True
        elif is_hunk and line[:1] in (b"+", b"-"):
            counts[line[:1] == b"-"] += 1
    if not files or len(files) > FILES:
        return ""
    lines = [
        f" {name} | {plus + minus} {'+' * min(plus, STAT)}{'-' * min(minus, STAT)}"
        for name, (plus, minus) in files.items()
    ]
    more, less = (sum(one[at] for one in files.values()) for at in (0, 1))
    total = f" {format_count(len(files), 'file')} changed, {format_count(more, 'line')} added"
    return "\n".join([*lines, f"{total}, {less:,} removed"])


def _tell_left(found: Beginning, more: int) -> str:
    if found.is_late:
        return f"Git was stopped after {GIT_S:g} s: what comes behind this is left out."
    if not found.is_whole:
        return f"Only the first {BYTES // 1_000_000} MB of the changes were read."
    return f"{more:,} more lines are left out." if more > 0 else ""


def _sort_lines(lines: list[str]) -> Iterator[Line]:
    for line in lines:
        cut = " …" if len(line) > WIDEST else ""
        kind = {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "same")
        yield Line("head" if line.startswith(HEADS) else kind, printable(line[:WIDEST]) + cut)
