"""What each file of the configuration held when all of it could last be used.

By that the limits of sessions hold while a person mends one that cannot be used.
"""

from __future__ import annotations

import binascii
import contextlib
import os
import time
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sm.base.decoding import decode
from sm.config import cache
from sm.config.cache import SETTLED_S, KeyPath
from sm.config.read import Document
from sm.store.files import read_harmless

FORMAT = 1
"""Of the entries. Another number makes those of other versions worthless."""


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
    with contextlib.suppress(OSError, RuntimeError):
        place = _place(document.path)
        is_noted = place.exists() and place.stat().st_mtime_ns == document.mtime_ns
        if is_noted or time.time() - document.mtime_ns / 1e9 < SETTLED_S:
            return
        entry = Usable(FORMAT, str(document.path), document.data, list(document.lines.items()))
        cache.put(place, entry, mtime_ns=document.mtime_ns)


def recall(path: Path, shown: str) -> Document | None:
    """Return what the file at `path` held when it could last be used; None if that is unknown.

    `shown` is its name in messages.
    """
    try:
        entry = decode(read_harmless(_place(path)), Usable)
    except (msgspec.MsgspecError, ValueError, OSError, RuntimeError):
        return None
    if (entry.format, entry.path) != (FORMAT, str(path)):
        return None
    return Document(path, shown, entry.data, dict(entry.lines))


def _place(path: Path) -> Path:
    """Two files may share a place: then the entry is that of the one that was used last."""
    return cache.find_folder() / f"{binascii.crc32(os.fsencode(path)):08x}.usable.json"
