"""Makes the file of the database, and checks it before SQLite opens it.

It checks without opening: a close would drop the locks of other connections in this process
(https://www.sqlite.org/howtocorrupt.html, "Posix advisory locks canceled").
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from sm.base.errors import StateError
from sm.store.files import check_regular, create_exclusive
from sm.store.sqlite_faults import make_damage_error

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
