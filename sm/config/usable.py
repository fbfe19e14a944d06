"""Last usable content of each file of the configuration.

With it agents are stopped at their limits while a person mends a file that cannot be used.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from sm.config import cache
from sm.config.cache import SETTLED_S, KeyPath
from sm.config.read import Document

FORMAT = 1
"""Format of the entries. Entries with another number, of other versions, are worthless."""
SUFFIX = ".usable"


class Usable(Struct, frozen=True):
    """The content of the file at `path`; `lines` as pairs, as JSON has no such keys."""

    format: int
    path: str
    data: Any
    lines: list[tuple[KeyPath, int]]


def note(document: Document) -> None:
    """Note what a file holds that was just used; a failure has no effect.

    Its entry has the time of the file, so one look tells whether it is noted already. Of a file
    that was written a moment ago nothing is noted: a second change could bear the same time.
    """
    if time.time() - document.mtime_ns / 1e9 < SETTLED_S:
        return
    with contextlib.suppress(OSError, RuntimeError):
        if cache.locate(document.path, SUFFIX).stat().st_mtime_ns == document.mtime_ns:
            return
    entry = Usable(FORMAT, str(document.path), document.data, list(document.lines.items()))
    cache.put_entry(document.path, entry, SUFFIX, mtime_ns=document.mtime_ns)


def recall(path: Path, shown: str) -> Document | None:
    """Return what the file at `path` held when it could last be used; None if that is unknown.

    `shown` is its name in messages.
    """
    entry = cache.read_entry(path, Usable, SUFFIX)
    if entry is None or (entry.format, entry.path) != (FORMAT, str(path)):
        return None
    return Document(path, shown, entry.data, dict(entry.lines))
