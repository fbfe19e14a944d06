"""Damaged files of the private directory: out of the way, so that they stop nothing, and said once.

What can be made anew goes; what cannot stays beside its place, for a person to look at.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TypeVar

from sm.errors import StateError
from sm.store import journal
from sm.store.files import FILE_LIMIT, discard, read_json, set_aside
from sm.store.paths import journal_of

T = TypeVar("T")


def read_rebuildable(path: Path, shape: type[T], *, limit: int = FILE_LIMIT) -> T | None:
    """The value in `path`, checked against `shape`; None where it is missing or damaged.

    What is damaged is removed, so that what it was made from makes it anew.
    """
    before = _version(path)
    try:
        return read_json(path, shape, limit=limit)
    except StateError as error:
        if _version(path) == before:  # else it has just been made anew
            record_damage(path, f"{error.message}: it is removed, and made anew when it is needed")
            with contextlib.suppress(StateError, OSError):
                discard(path)
        return None


def read_irreplaceable(path: Path, shape: type[T], lost: str) -> T | None:
    """The same for what nothing can make anew: `lost` says what that means, and what to do.

    What is damaged is renamed.
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
    """Tell in the journal what is wrong with a file; a full disk is no reason to stop."""
    if place := journal_of(path):
        file, session = place
        with contextlib.suppress(StateError):
            journal.record_once(file, "problem", session, what)
