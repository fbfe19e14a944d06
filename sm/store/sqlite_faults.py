"""Explains errors of SQLite, and says what to do."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sm.base.errors import SmError, StateError, TemporaryError

DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
"""Codes of a full disk. With the second one the journal's index, which every reader needs, could
not grow."""


class RowError(sqlite3.DataError):
    """A row holds a value that sm never writes."""


@contextlib.contextmanager
def explain_errors(path: Path, waited_s: float) -> Iterator[None]:
    """Turn errors of SQLite into ours. `waited_s` is how long SQLite waits for other writers.

    Raises:
        StateError: the database at `path` is damaged, or cannot be used as it is.
        TemporaryError: others held it too long, or the disk is full.

    """
    try:
        yield
    except sqlite3.Error as error:
        raise _explanation(path, error, waited_s) from error


def make_damage_error(path: Path) -> StateError:
    """Return the error for a file that is no sound database."""
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
        return make_damage_error(path)
    if code in NOT_WRITABLE:
        return StateError(f"cannot write '{path}', or beside it: {error}: mend its permissions")
    return StateError(f"cannot use '{path}': {error}")
