"""Where the database is: its file is made, and looked at before SQLite opens it.

It is looked at without being opened: closing it would drop the locks that other connections of the
process hold on it (https://www.sqlite.org/howtocorrupt.html, "Posix advisory locks canceled").
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from sm.bridge.faults import damaged
from sm.errors import StateError
from sm.store.files import check_regular, create_exclusive

SMALLEST = 512
"""Bytes of a page; see https://www.sqlite.org/fileformat.html."""

making = threading.Lock()
"""Held until a file that was made is closed: nobody else in this process has it open then."""


def is_there(path: Path) -> bool:
    """Whether a database, or anything else, is at `path`.

    Raises:
        StateError: it cannot be looked for.

    """
    with _named("look for", path):
        return path.exists()


def make(path: Path) -> None:
    """Make an empty file (0600) where there is none.

    Raises:
        StateError: it cannot be made, or would be where other users may write.

    """
    with _named("make", path.parent):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_folder(path.parent)
    with making:
        if not is_there(path):
            create_exclusive(path)


def check_folder(folder: Path) -> None:
    """Refuse a folder that other users may write to.

    Raises:
        StateError: it is one, or cannot be looked at.

    """
    with _named("look at", folder):
        found = folder.stat()
    # Whoever can put a journal beside a database can change what is read from it.
    if found.st_mode & 0o022 or found.st_uid not in (os.geteuid(), 0):
        raise StateError(
            f"'{folder}' can be written by other users: keep the database in a folder of your own"
        )


def check_file(path: Path) -> None:
    """Refuse a file that is not ours alone, or cannot be a database.

    Raises:
        StateError: it is one, or cannot be looked at.

    """
    with _named("look at", path):
        found = path.lstat()
    check_regular(path, found)
    if found.st_mode & 0o077:
        raise StateError(f"'{path}' is open to other users: run chmod 600 on it")
    if 0 < found.st_size < SMALLEST:  # SQLite would take the rest of a database for a new one
        raise damaged(path)


@contextlib.contextmanager
def _named(what: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        said = os.strerror(error.errno or 0)
        raise StateError(f"cannot {what} '{path}': {said}") from error
