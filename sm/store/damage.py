"""Moves damaged files of the private directory out of the way, and says so once.

A file that can be made again is removed. Any other is renamed, so that a person can look at it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from sm.base.errors import StateError
from sm.store import events, journal
from sm.store.files import FILE_LIMIT, discard, list_names, read_json, set_aside
from sm.store.paths import find_journal

T = TypeVar("T")


def read_rebuildable(path: Path, shape: type[T], *, limit: int = FILE_LIMIT) -> T | None:
    """Return the value in `path`, checked against `shape`; None if missing or damaged.

    A damaged file is removed, so that sm makes it again.
    """
    before = _version(path)
    try:
        return read_json(path, shape, limit=limit)
    except StateError as error:
        if _version(path) == before:  # otherwise another process has just made it again
            record_damage(path, f"{error.message}: it is removed, and made anew when it is needed")
            with contextlib.suppress(StateError, OSError):
                discard(path)
        return None


def read_each(folder: Path, shape: type[T], suffix: str = ".json") -> Iterator[tuple[str, T]]:
    """Yield the name and the value of each file in `folder` with this suffix, in order of names.

    What is damaged, or goes meanwhile, is left out, as in `read_rebuildable`.
    """
    for name in list_names(folder):
        if not name.endswith(suffix) or name.startswith("."):
            continue
        if (found := read_rebuildable(folder / name, shape)) is not None:
            yield name, found


def read_irreplaceable(path: Path, shape: type[T], lost: str) -> T | None:
    """Read as `read_rebuildable` does, but rename a damaged file instead of removing it.

    Use it for files that nothing can make again. `lost` says what that means, and what to do.
    """
    before = _version(path)
    try:
        return read_json(path, shape)
    except StateError as error:
        if _version(path) == before:
            with contextlib.suppress(OSError):
                record_damage(
                    path, f"{error.message}: {lost}; it is kept as '{set_aside(path).name}'"
                )
        return None


def _version(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = path.lstat()
        return found.st_ino, found.st_mtime_ns
    return None


def record_damage(path: Path, what: str) -> None:
    """Write into the journal what is wrong with a file; a full disk is no error here."""
    if place := find_journal(path):
        file, session = place
        with contextlib.suppress(StateError):
            journal.record_once(file, events.Problem(session=session, text=what))
