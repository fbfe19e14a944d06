"""Keeps what a configuration file holds, so that most commands need not parse it again.

An entry is believed while its file is the very same: device, inode, size, and both times. Of a file
that was written a moment ago nothing is kept: a second change could bear the same time.
"""

from __future__ import annotations

import binascii
import os
import time
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from sm.base.decoder import decode
from sm.base.errors import StateError
from sm.store.files import ensure_private_dir, read_harmless, write_atomic

T = TypeVar("T", bound=Struct)

KeyPath = tuple[str | int, ...]
"""The keys, and places in lists, that lead to a value."""

FORMAT = 1
"""Format of the entries. Entries with another number, of other versions, are worthless."""
SETTLED_S = 2.0
"""Seconds; the times of no file system are coarser than that."""


class Content(Struct, frozen=True):
    """The keys and values of a file, and the line of each key, counted from 1."""

    data: Any
    lines: dict[KeyPath, int]


class Cached(Struct, frozen=True):
    """The content of a file with that stamp; `lines` as pairs, as JSON has no such keys."""

    format: int
    stamp: tuple[int, ...]
    data: Any
    lines: list[tuple[KeyPath, int]]


def recall(path: Path, found: os.stat_result) -> Content | None:
    """Return what the file at `path` held when it was `found` so before; None if unknown."""
    entry = read_entry(path, Cached)
    if entry is None or (entry.format, entry.stamp) != (FORMAT, _stamp(found)):
        return None
    return Content(entry.data, dict(entry.lines))


def keep(path: Path, found: os.stat_result, content: Content) -> None:
    """Keep what a file holds, if it can be kept as it is; a failure has no effect."""
    if time.time() - max(found.st_mtime, found.st_ctime) < SETTLED_S:
        return
    put_entry(path, Cached(FORMAT, _stamp(found), content.data, list(content.lines.items())))


def read_entry(path: Path, shape: type[T], suffix: str = "") -> T | None:
    """Return the entry about the file at `path`, or about one that shares its place; None: none."""
    try:
        return decode(read_harmless(locate(path, suffix)), shape)
    except (msgspec.MsgspecError, ValueError, OSError, RuntimeError):
        return None


def put_entry(path: Path, entry: Struct, suffix: str = "", *, mtime_ns: int | None = None) -> None:
    """Write an entry, if it can be kept as it is; a failure has no effect.

    `mtime_ns` is the time that its file gets, in nanoseconds since the epoch; by default it is now.
    """
    try:
        encoded = msgspec.json.encode(entry)
        if decode(encoded, type(entry)) != entry:  # a date, a key that is a number
            return
        ensure_private_dir(find_folder(), parents=True)
        write_atomic(locate(path, suffix), encoded, mtime_ns=mtime_ns)
    except (StateError, OSError, TypeError, ValueError, OverflowError, RuntimeError):
        return


def find_folder() -> Path:
    """Return the folder of the entries. All of it may be removed at any time.

    Raises:
        RuntimeError: the user has no home.

    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "sm" / "config"


def locate(path: Path, suffix: str = "") -> Path:
    """Return where the entry about the file at `path` is; two files may share a place.

    Raises:
        RuntimeError: the user has no home.

    """
    return find_folder() / f"{binascii.crc32(os.fsencode(path)):08x}{suffix}.json"


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
