"""The database file of the bridge: made, opened, brought up to date; many processes share it.

SQLite in WAL mode: readers and the one writer do not wait for each other, and what a killed
process had not committed is gone as a whole.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from sm.bridge.faults import damaged, explained
from sm.errors import StateError
from sm.store import lock
from sm.store.files import check_regular, create_exclusive

APPLICATION = 0x736D6272
"""`application_id` of our files: "smbr"."""

BUSY_S = 30.0
"""So long a writer waits for the others."""

MIGRATIONS = (
    """
    CREATE TABLE handoffs (
        id TEXT PRIMARY KEY,
        title TEXT NOT NULL,
        project TEXT,
        chat_last_seen INTEGER DEFAULT 0,
        code_last_seen INTEGER DEFAULT 0,
        status TEXT DEFAULT 'active',
        created_at TEXT,
        updated_at TEXT
    );
    CREATE TABLE handoff_entries (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        handoff_id TEXT NOT NULL REFERENCES handoffs(id),
        from_client TEXT NOT NULL,
        type TEXT NOT NULL,
        content TEXT NOT NULL,
        created_at TEXT
    );
    CREATE INDEX entries_of_handoff ON handoff_entries(handoff_id, seq);
    """,
    """
    CREATE TABLE handoff_bindings (
        handoff_id TEXT PRIMARY KEY REFERENCES handoffs(id),
        project TEXT NOT NULL,
        issue INTEGER NOT NULL,
        handed_seq INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX bindings_of_issue ON handoff_bindings(project, issue);
    ALTER TABLE handoff_entries ADD COLUMN key TEXT;
    CREATE UNIQUE INDEX entries_once ON handoff_entries(handoff_id, key) WHERE key IS NOT NULL;
    """,
)
"""Number n leads from `user_version` n to n + 1. One that was released is never changed."""

VERSION = len(MIGRATIONS)

SMALLEST = 512
"""Bytes of a page; see https://www.sqlite.org/fileformat.html."""

Connection = sqlite3.Connection

making = threading.Lock()
"""Held until a file that was made is closed: nobody else here has it open then (`_check_file`)."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Connection]:
    """The database at `path`, which is made where it is missing; closed afterwards.

    What SQLite reports while it is open comes out as one of our errors.

    Raises:
        StateError: it is not ours, damaged, of a newer version, or cannot be written.
        TemporaryError: others held it too long, or the disk is full.

    """
    with explained(path, BUSY_S):
        _make(path)
        _check_file(path)
        with contextlib.closing(_connect(path)) as connection:
            if _is_behind(connection, path):
                with lock.hold(path.with_name(f"{path.name}.lock"), timeout_s=BUSY_S):
                    _bring_up_to_date(connection, path)
            yield connection


def is_there(path: Path) -> bool:
    """Whether a database, or anything else, is at `path`.

    Raises:
        StateError: it cannot be looked for.

    """
    try:
        return path.exists()
    except OSError as error:
        raise StateError(f"cannot look for '{path}': {os.strerror(error.errno or 0)}") from error


def check(path: Path) -> None:
    """Look whether the database that is there can be used; nothing is changed.

    Raises:
        StateError, TemporaryError: as `opened`.

    """
    with explained(path, BUSY_S):
        _check_folder(path.parent)
        _check_file(path)
        with contextlib.closing(_connect(path)) as connection:
            _is_behind(connection, path)
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise damaged(path)


@contextlib.contextmanager
def transaction(connection: Connection, *, writes: bool = True) -> Iterator[None]:
    """All that is written inside, or nothing; all that is read is of one moment.

    Other writers wait from the beginning on, unless it says that it only reads.
    """
    connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # a full disk has rolled it back already
            connection.execute("ROLLBACK")
        raise


def _make(path: Path) -> None:
    """An empty file (0600) where there is none."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        said = os.strerror(error.errno or 0)
        raise StateError(f"cannot make '{path.parent}': {said}") from error
    _check_folder(path.parent)
    with making:
        if not is_there(path):
            create_exclusive(path)


def _check_folder(folder: Path) -> None:
    # Whoever can put a journal beside a database can change what is read from it.
    found = folder.stat()
    if found.st_mode & 0o022 or found.st_uid not in (os.geteuid(), 0):
        raise StateError(
            f"'{folder}' can be written by other users: keep the database in a folder of your own"
        )


def _check_file(path: Path) -> None:
    # It is not opened: closing it would drop the locks of this process's other connections
    # (https://www.sqlite.org/howtocorrupt.html, "Posix advisory locks canceled").
    found = path.lstat()
    check_regular(path, found)
    if found.st_mode & 0o077:
        raise StateError(f"'{path}' is open to other users: run chmod 600 on it")
    if 0 < found.st_size < SMALLEST:  # SQLite would take the rest of a database for a new one
        raise damaged(path)


def _connect(path: Path) -> Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", timeout=BUSY_S, isolation_level=None, uri=True
    )
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")  # what was answered survives a power cut
    return connection


def _is_behind(connection: Connection, path: Path) -> bool:
    """Whether something is to be done before it can be used.

    Raises:
        StateError: it is another program's, or of a newer version.

    """
    with transaction(connection, writes=False):  # somebody may be making it just now
        version = _pragma(connection, "user_version")
        application = _pragma(connection, "application_id")
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application != APPLICATION and (application or version or tables):
        raise StateError(
            f"'{path}' is the database of another program: name another file, it was not touched"
        )
    if version > VERSION:
        raise StateError(
            f"'{path}' was made by a newer sm (version {version}, this one knows {VERSION}): "
            "update sm; it was not touched"
        )
    return version < VERSION


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _bring_up_to_date(connection: Connection, path: Path) -> None:
    if not _is_behind(connection, path):
        return  # somebody else was first
    connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection):
        for number in range(_pragma(connection, "user_version"), VERSION):
            for statement in MIGRATIONS[number].split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
