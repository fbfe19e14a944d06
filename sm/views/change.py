"""Change as a person reads it: files, hunks, and lines with their numbers. Pure.

The patch is git's or a forge's, of what an agent has committed: a file may be huge, binary, or have
any name. Each line of the patch is in what is made of it, also one that no format knows, since a
person approves what is shown here. (unidiff 1.0.1, which was tried, passes over lines behind those
that a hunk's head counts, and gives up at a patch that was cut.)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise

from msgspec import Struct

FILE = b"diff --"
"""Beginning of a file's part: `diff --git`, and `diff --cc` of a merge. (Git's diff-format.adoc.)
Lines of a hunk begin with a blank, a sign or a backslash, so no content looks like it."""
HUNK = re.compile(rb"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)", re.DOTALL)
QUOTED = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
"""Escape within a quoted name (git's quote.c)."""
ESCAPES = {
    b"a": b"\a",
    b"b": b"\b",
    b"t": b"\t",
    b"n": b"\n",
    b"v": b"\v",
    b"f": b"\f",
    b"r": b"\r",
    b'"': b'"',
    b"\\": b"\\",
}
NOWHERE = "/dev/null"


class DiffLineKind(StrEnum):
    r"""Kind of a changed file's line. A NOTE is git's own word, such as `\ No newline …`."""

    ADDED = "added"
    REMOVED = "removed"
    SAME = "same"
    NOTE = "note"


SIGNS = {
    b"+": DiffLineKind.ADDED,
    b"-": DiffLineKind.REMOVED,
    b" ": DiffLineKind.SAME,
    b"": DiffLineKind.SAME,
}
"""Kinds by the sign before a line. Some forges and mails drop the blank of an empty line."""


class ChangedLine(Struct, frozen=True):
    """Line of a hunk without its sign. `old` and `new` count from 1, 0 where it has no number."""

    kind: DiffLineKind
    text: str
    old: int = 0
    new: int = 0


class Hunk(Struct, frozen=True):
    """Lines that changed, with some around them; `heading` is the function that they are in."""

    heading: str
    lines: tuple[ChangedLine, ...]


class FileChange(StrEnum):
    """Kind of a file's change."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"
    COPIED = "copied"


class ChangedFile(Struct, frozen=True):
    """Change of one file.

    `old_path` is another one than `path` if it was renamed or copied. `notes` are what git says of
    it besides, such as a new mode. `digest` stays the same as long as its lines do, wherever in the
    file they are.
    """

    path: str
    old_path: str
    change: FileChange
    hunks: tuple[Hunk, ...]
    notes: tuple[str, ...]
    added: int
    removed: int
    is_binary: bool
    digest: str


def read_files(patch: bytes) -> tuple[ChangedFile, ...]:
    """Read the files of a patch, in its order; one that was cut ends with what there is of it."""
    # Only LF ends a line: `splitlines` would cut at CR, U+2028, and at a form feed.
    lines = patch.removesuffix(b"\n").split(b"\n")
    return tuple(_read_file(part) for part in _split(lines, FILE))


def _split(lines: list[bytes], mark: bytes) -> Iterator[list[bytes]]:
    """Yield the parts that begin with a marked line. What comes before the first is in none."""
    starts = [at for at, line in enumerate(lines) if line.startswith(mark)]
    for start, end in pairwise([*starts, len(lines)]):
        yield lines[start:end]


def _read_file(part: list[bytes]) -> ChangedFile:
    body = next((at for at, line in enumerate(part) if line.startswith(b"@@")), len(part))
    head = part[:body]
    hunks = tuple(_read_hunk(one[0], one[1:]) for one in _split(part[body:], b"@@"))
    kinds = [line.kind for hunk in hunks for line in hunk.lines]
    told = _read_head(head)
    old, new = _find_names(head[0], told)
    is_binary = any(line.startswith((b"Binary files ", b"GIT binary patch")) for line in head)
    return ChangedFile(
        path=old if new == NOWHERE else new,
        old_path=new if old == NOWHERE else old,
        change=_find_change(told, old, new),
        hunks=hunks,
        notes=tuple(_list_notes(head[1:], is_binary=is_binary)),
        added=kinds.count(DiffLineKind.ADDED),
        removed=kinds.count(DiffLineKind.REMOVED),
        is_binary=is_binary,
        digest=_digest(part),
    )


# What stands before the hunks of a file

NAMES = (b"--- ", b"+++ ", b"rename from ", b"rename to ", b"copy from ", b"copy to ")
UNSHOWN = (*NAMES, b"index ", b"similarity index ", b"dissimilarity index ")
"""Lines that are in a file's own fields, or that tell a reader nothing."""


def _read_head(head: list[bytes]) -> dict[bytes, bytes]:
    """Return the lines of a file's head that have a name, by how they begin."""
    found: dict[bytes, bytes] = {}
    for line in head[1:]:
        for name in (*NAMES, b"new file mode ", b"deleted file mode "):
            if line.startswith(name):
                found.setdefault(name, line[len(name) :])
    return found


def _find_names(first: bytes, told: dict[bytes, bytes]) -> tuple[str, str]:
    """Return the file's name before and after, NOWHERE if it was not there."""
    for before, after in ((b"rename from ", b"rename to "), (b"copy from ", b"copy to ")):
        if before in told and after in told:
            return _read_name(told[before]), _read_name(told[after])
    if b"--- " in told and b"+++ " in told:
        # Git puts a tab behind a name that has a blank (diff.c, `diff_get_tail`).
        old, new = (_read_name(told[sign].removesuffix(b"\t")) for sign in (b"--- ", b"+++ "))
        return _strip(old), _strip(new)
    name = _read_common_name(first)
    if b"new file mode " in told:
        return NOWHERE, name
    return name, NOWHERE if b"deleted file mode " in told else name


def _read_common_name(first: bytes) -> str:
    """Return the name in `diff --git a/NAME b/NAME`, or what stands there if it is not that."""
    names = first.split(b" ", 2)[-1]
    half = len(names) // 2
    old, new = names[:half], names[half + 1 :]
    if names[half : half + 1] == b" " and _strip(_read_name(old)) == _strip(_read_name(new)):
        return _strip(_read_name(new))
    return _read_name(names)


def _read_name(name: bytes) -> str:
    if name.startswith(b'"') and name.endswith(b'"') and len(name) > 1:
        name = QUOTED.sub(_unquote, name[1:-1])
    return _decode(name)


def _unquote(found: re.Match[bytes]) -> bytes:
    sign = found[1]
    return ESCAPES[sign] if sign in ESCAPES else bytes([int(sign, 8) & 0xFF])


def _strip(name: str) -> str:
    return name if name == NOWHERE else name.removeprefix("a/").removeprefix("b/")


def _find_change(told: dict[bytes, bytes], old: str, new: str) -> FileChange:
    if b"rename to " in told:
        return FileChange.RENAMED
    if b"copy to " in told:
        return FileChange.COPIED
    if old == NOWHERE:
        return FileChange.ADDED
    return FileChange.REMOVED if new == NOWHERE else FileChange.CHANGED


def _list_notes(head: list[bytes], *, is_binary: bool) -> Iterator[str]:
    for line in head:
        if line.startswith(b"GIT binary patch"):
            return  # what follows is the content, packed
        if line and not line.startswith(UNSHOWN) and not (is_binary and line.startswith(b"Binary")):
            yield _decode(line)


# Hunks


def _read_hunk(head: bytes, body: list[bytes]) -> Hunk:
    told = HUNK.fullmatch(head)
    if told is None:  # of a merge, which has a number for each parent
        lines = (ChangedLine(_find_kind(line), _decode(line[1:])) for line in body)
        return Hunk(_decode(head), tuple(lines))
    return Hunk(_decode(told[3]), tuple(_number_lines(body, int(told[1]), int(told[2]))))


def _number_lines(body: list[bytes], old: int, new: int) -> Iterator[ChangedLine]:
    for line in body:
        match kind := _find_kind(line):
            case DiffLineKind.ADDED:
                yield ChangedLine(kind, _decode(line[1:]), new=new)
                new += 1
            case DiffLineKind.REMOVED:
                yield ChangedLine(kind, _decode(line[1:]), old=old)
                old += 1
            case DiffLineKind.SAME:
                yield ChangedLine(kind, _decode(line[1:]), old, new)
                old, new = old + 1, new + 1
            case DiffLineKind.NOTE:
                yield ChangedLine(kind, _decode(line))


def _find_kind(line: bytes) -> DiffLineKind:
    return SIGNS.get(line[:1], DiffLineKind.NOTE)


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _digest(part: list[bytes]) -> str:
    found = hashlib.sha256()
    for line in part:
        if line.startswith(b"index "):
            continue
        found.update(b"@@\n" if line.startswith(b"@@") else line + b"\n")
    return found.hexdigest()[:16]
