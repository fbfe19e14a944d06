"""Change as the page shows it: files with their counts, of which the first are open."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape
from msgspec import Struct

from sm.adapters.process import Beginning
from sm.base.text import format_count
from sm.plugins.page.changes.generated import is_generated
from sm.plugins.page.changes.highlighter import Highlighter
from sm.views.change import ChangedFile, FileChange, Hunk, LineKind, read_files

BYTES = 2_000_000
"""Bytes of a patch that are read."""
AT_ONCE = 400
"""Lines that are open at once; further files are asked for when they are opened."""
LARGE = 4000
"""Lines of one file that are shown."""
WIDEST = 2000
"""Characters of a line that are shown."""
KEPT = 12
"""Changes that are kept to be shown file by file."""
USUAL = ("new file mode 100644", "deleted file mode 100644")
"""Modes that say no more than that the file is new, or gone."""
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffc"
    "\U000e0000-\U000e0fff]"
)
"""Characters that a reader does not see, or that turn others around: in code they are named."""


class ShownLine(Struct, frozen=True):
    """Line of a file: its numbers, 0 for none, and its text as HTML."""

    kind: LineKind
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


class ShownChange(Struct, frozen=True):
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


def show_change(found: Beginning) -> tuple[ShownChange, tuple[ChangedFile, ...]]:
    """Make what is shown of a patch, and the files that it was made of."""
    files = read_files(found.data)
    digest = hashlib.sha256(found.data).hexdigest()[:24]
    shown = tuple(_show_files(files))
    return ShownChange(digest, shown, _tell_left_out(found)), files


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
            path=mark_hidden(file.path),
            old_path=mark_hidden(file.old_path),
            change=file.change,
            notes=tuple(mark_hidden(one) for one in file.notes if one not in USUAL),
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
    texts = [_cut(mark_hidden(line.text)) for line in hunk.lines]
    made = [escape(text) for text in texts]
    for other in (LineKind.REMOVED, LineKind.ADDED):
        at = [n for n, line in enumerate(hunk.lines) if line.kind not in (other, LineKind.NOTE)]
        for n, line in zip(at, highlighter.colour(path, [texts[n] for n in at]), strict=True):
            made[n] = line
    lines = (
        ShownLine(line.kind, line.old, line.new, html)
        for line, html in zip(hunk.lines, made, strict=True)
    )
    return ShownHunk(mark_hidden(hunk.heading), tuple(lines))


def mark_hidden(text: str) -> str:
    """Return the text with a name in the place of each character that a reader cannot see."""
    return HIDDEN.sub(lambda found: f"‹U+{ord(found[0]):04X}›", text.removesuffix("\r"))


def _cut(text: str) -> str:
    if len(text) <= WIDEST:
        return text
    return f"{text[:WIDEST]} … {len(text) - WIDEST:,} more characters"


class ChangeStore:
    """Changes that were shown last, so that their files can be asked for one by one."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._kept: OrderedDict[str, tuple[ChangedFile, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def show(self, found: Beginning) -> ShownChange:
        """Show a patch, and keep its files."""
        shown, files = show_change(found)
        with self._lock:
            self._kept[shown.id] = files
            self._kept.move_to_end(shown.id)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return shown

    def find(self, ident: str, index: int) -> ChangedFile | None:
        """Return a file of a change that was shown; None if it is kept no more."""
        with self._lock:
            files = self._kept.get(ident, ())
        return files[index] if 0 <= index < len(files) else None
