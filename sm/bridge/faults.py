"""What SQLite reports, in words that say what to do."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sm.errors import SmError, StateError, TemporaryError

DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
"""The latter: the index of the journal, which every reader needs too, could not be made larger."""


class RowError(sqlite3.DataError):
    """A row holds what nobody can have written."""


@contextlib.contextmanager
def explained(path: Path, waited_s: float) -> Iterator[None]:
    """Has errors of SQLite come out as ours; `waited_s`: so long it waits for other writers.

    Raises:
        StateError: the database at `path` is damaged, or cannot be used as it is.
        TemporaryError: others held it too long, or the disk is full.

    """
    try:
        yield
    except sqlite3.Error as error:
        raise _explanation(path, error, waited_s) from error


def damaged(path: Path) -> StateError:
    """The error of a file that is no sound database."""
    return StateError(
        f"'{path}' is damaged: nothing was written; put a copy in its place, or move it away to "
        "begin anew"
    )


def _explanation(path: Path, error: sqlite3.Error, waited_s: float) -> SmError:
    extended = getattr(error, "sqlite_errorcode", 0)
    code = extended & 0xFF
    if code in BUSY:
        return TemporaryError(f"'{path}' was in use for {waited_s:g} s: try again")
    if extended in NO_ROOM:
        return TemporaryError(
            f"no space left for '{path}': nothing was written; make room, then try again"
        )
    if code in DAMAGED or isinstance(error, RowError):
        return damaged(path)
    if code in NOT_WRITABLE:
        return StateError(f"cannot write '{path}', or beside it: {error}: mend its permissions")
    return StateError(f"cannot use '{path}': {error}")
