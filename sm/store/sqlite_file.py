"""File of a database: makes it, checks it before SQLite opens it, and explains SQLite's errors.

The check does not open the file: a close would drop the locks of other connections in this process
(https://www.sqlite.org/howtocorrupt.html, "Posix advisory locks canceled").
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from sm.base.errors import SmError, StateError, TemporaryError
from sm.store.files import check_regular, create_exclusive

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


SMALLEST = 512
"""Bytes of a page; see https://www.sqlite.org/fileformat.html."""

making = threading.Lock()
"""Held until a new file is closed, so that no other thread of this process has it open then."""


def is_there(path: Path) -> bool:
    """Say whether a database, or anything else, is at `path`.

    Raises:
        StateError: the folder cannot be read.

    """
    with _named("look for", path):
        return path.exists()


def make_file(path: Path) -> None:
    """Make an empty file (0600) if there is none.

    Raises:
        StateError: it cannot be made, or other users may write to its folder.

    """
    make_folder(path.parent)
    with making:
        if not is_there(path):
            create_exclusive(path)


def make_folder(folder: Path) -> None:
    """Make the folder (0700) if there is none.

    Raises:
        StateError: it cannot be made, or other users may write to it.

    """
    with _named("make", folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_folder(folder)


def check_folder(folder: Path) -> None:
    """Refuse a folder that other users may write to.

    Raises:
        StateError: it is one, or cannot be looked at.

    """
    with _named("look at", folder):
        found = folder.stat()
    # A user who can put a journal beside a database can change what we read from it.
    if found.st_mode & 0o022 or found.st_uid not in (os.geteuid(), 0):
        raise StateError(
            f"'{folder}' can be written by other users: keep the database in a folder of your own"
        )


def check_file(path: Path) -> None:
    """Refuse a file that is not ours alone, or that cannot be a database.

    Raises:
        StateError: it is one, or cannot be looked at.

    """
    with _named("look at", path):
        found = path.lstat()
    check_regular(path, found)
    if found.st_mode & 0o077:
        raise StateError(f"'{path}' is open to other users: run chmod 600 on it")
    if 0 < found.st_size < SMALLEST:  # SQLite would take a truncated database for a new one
        raise make_damage_error(path)


@contextlib.contextmanager
def _named(what: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        said = os.strerror(error.errno or 0)
        raise StateError(f"cannot {what} '{path}': {said}") from error
