"""Change as the page shows it: files with their counts, of which the first are open."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape
from msgspec import Struct

from sm.adapters.process import Beginning
from sm.base.text import format_count, name_hidden
from sm.plugins.page.changes.generated import is_generated
from sm.plugins.page.changes.highlighter import Highlighter
from sm.views.change import ChangedFile, DiffLineKind, FileChange, Hunk, read_files

BYTES = 2_000_000
"""Bytes of a patch that are read."""
AT_ONCE = 400
"""Lines that are open at once; further files are asked for when they are opened."""
LARGE = 4000
"""Lines of one file that are shown."""
WIDEST = 2000
"""Characters of a line that are shown."""
KEPT = 8_000_000
"""Bytes of the patches that are kept to be shown file by file; the last one is always kept."""
USUAL = ("new file mode 100644", "deleted file mode 100644")
"""Modes that say no more than that the file is new, or gone."""


class ShownLine(Struct, frozen=True):
    """Line of a file: its numbers, 0 for none, and its text as HTML."""

    kind: DiffLineKind
    old: int
    new: int
    html: Markup


class ShownHunk(Struct, frozen=True):
    """Lines that belong together, and what stands above them."""

    heading: str
    lines: tuple[ShownLine, ...]


class ShownFile(Struct, frozen=True):
    """File of a change. `key` names it on the page; `digest` is what "viewed" is of."""

    key: str
    index: int
    path: str
    old_path: str
    change: FileChange
    notes: tuple[str, ...]
    added: int
    removed: int
    is_binary: bool
    is_generated: bool
    digest: str
    opens: bool

    @property
    def folder(self) -> str:
        """Folder that it is in, '' for the first one."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """Its name without its folder."""
        return self.path.rpartition("/")[2]


class ShownPatch(Struct, frozen=True):
    """Change with its files. `id` names it to the store; `left_out` says what is not shown."""

    id: str
    files: tuple[ShownFile, ...]
    left_out: str

    @property
    def total(self) -> str:
        """How much changes, in words."""
        more, less = (
            sum(getattr(one, name) for one in self.files) for name in ("added", "removed")
        )
        return f"{format_count(len(self.files), 'file')}, +{more:,} −{less:,}"


def show_change(found: Beginning) -> tuple[ShownPatch, tuple[ChangedFile, ...]]:
    """Make what is shown of a patch, and the files that it was made of."""
    files = read_files(found.data)
    digest = hashlib.sha256(found.data).hexdigest()[:24]
    shown = tuple(_show_files(files))
    return ShownPatch(digest, shown, _tell_left_out(found)), files


def _show_files(files: Sequence[ChangedFile]) -> Iterator[ShownFile]:
    room = AT_ONCE
    for index, file in enumerate(files):
        made = is_generated(file.path)
        size = sum(len(hunk.lines) for hunk in file.hunks)
        opens = not made and not file.is_binary and size <= room
        room -= size if opens else 0
        yield ShownFile(
            key=f"f{hashlib.sha256(file.path.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}",
            index=index,
            path=name_hidden(file.path),
            old_path=name_hidden(file.old_path),
            change=file.change,
            notes=tuple(name_hidden(one) for one in file.notes if one not in USUAL),
            added=file.added,
            removed=file.removed,
            is_binary=file.is_binary,
            is_generated=made,
            digest=file.digest,
            opens=opens,
        )


def _tell_left_out(found: Beginning) -> str:
    if found.is_late:
        return "Git was stopped before it was done: what comes behind this is left out."
    if not found.is_whole:
        return f"Only the first {BYTES // 1_000_000} MB of the changes were read."
    return ""


def show_hunks(file: ChangedFile, highlighter: Highlighter) -> tuple[list[ShownHunk], str]:
    """Return the lines of a file with their colours, and what is left out of them, in words."""
    shown, room = list[ShownHunk](), LARGE
    for hunk in file.hunks:
        if room <= 0:
            break
        kept = Hunk(hunk.heading, hunk.lines[:room])
        room -= len(kept.lines)
        shown.append(_show_hunk(file.path, kept, highlighter))
    count = sum(len(hunk.lines) for hunk in file.hunks)
    return shown, f"{count - LARGE:,} more lines are left out." if count > LARGE else ""


def _show_hunk(path: str, hunk: Hunk, highlighter: Highlighter) -> ShownHunk:
    """Colour the old and the new lines by themselves: each is code, and both together are none."""
    ends = {line.text.endswith("\r") for line in hunk.lines if line.kind is not DiffLineKind.NOTE}
    # An end of line is told where it changes, and not where a whole file has it.
    shown = [line.text.removesuffix("\r") if len(ends) == 1 else line.text for line in hunk.lines]
    texts = [_cut(name_hidden(text)) for text in shown]
    made = [escape(text) for text in texts]
    for other in (DiffLineKind.REMOVED, DiffLineKind.ADDED):
        at = [n for n, line in enumerate(hunk.lines) if line.kind not in (other, DiffLineKind.NOTE)]
        for n, line in zip(at, highlighter.colour(path, [texts[n] for n in at]), strict=True):
            made[n] = line
    lines = (
        ShownLine(line.kind, line.old, line.new, html)
        for line, html in zip(hunk.lines, made, strict=True)
    )
    return ShownHunk(name_hidden(hunk.heading), tuple(lines))


def _cut(text: str) -> str:
    if len(text) <= WIDEST:
        return text
    return f"{text[:WIDEST]} … {len(text) - WIDEST:,} more characters"


class ChangeStore:
    """Changes that were shown last, so that their files can be asked for one by one."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._kept: OrderedDict[str, tuple[int, tuple[ChangedFile, ...]]] = OrderedDict()
        self._lock = threading.Lock()

    def show(self, found: Beginning) -> ShownPatch:
        """Show a patch, and keep its files."""
        shown, files = show_change(found)
        with self._lock:
            self._kept[shown.id] = len(found.data), files
            self._kept.move_to_end(shown.id)
            while len(self._kept) > 1 and sum(size for size, _ in self._kept.values()) > KEPT:
                self._kept.popitem(last=False)
        return shown

    def find(self, ident: str, index: int) -> ChangedFile | None:
        """Return a file of a change that was shown; None if it is kept no more."""
        with self._lock:
            _, files = self._kept.get(ident, (0, ()))
        return files[index] if 0 <= index < len(files) else None
