"""The database file of the bridge: made, opened, brought up to date; many processes share it.

SQLite in WAL mode: readers and the one writer do not wait for each other, and what a killed
process had not committed is gone as a whole.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sm.bridge import place
from sm.bridge.faults import damaged, explained
from sm.errors import StateError
from sm.store import lock

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

Connection = sqlite3.Connection


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Connection]:
    """The database at `path`, which is made where it is missing; closed afterwards.

    What SQLite reports while it is open comes out as one of our errors.

    Raises:
        StateError: it is not ours, damaged, of a newer version, or cannot be written.
        TemporaryError: others held it too long, or the disk is full.

    """
    with explained(path, BUSY_S):
        place.make(path)
        place.check_file(path)
        with contextlib.closing(_connect(path)) as connection:
            if _is_behind(connection, path):
                with lock.hold(path.with_name(f"{path.name}.lock"), timeout_s=BUSY_S):
                    _bring_up_to_date(connection, path)
            yield connection


def check(path: Path) -> None:
    """Look whether the database that is there can be used; nothing is changed.

    Raises:
        StateError, TemporaryError: as `opened`.

    """
    with explained(path, BUSY_S):
        place.check_folder(path.parent)
        place.check_file(path)
        with contextlib.closing(_connect(path)) as connection:
            _is_behind(connection, path)
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise damaged(path)


@contextlib.contextmanager
def transaction(connection: Connection, *, writes: bool = True) -> Iterator[None]:
    """All that is written inside, or nothing; all that is read is of one moment.

    Other writers wait from the beginning on, unless it says that it only reads. Inside another one
    it is a part of that.
    """
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # a full disk has rolled it back already
            connection.execute("ROLLBACK")
        raise


def _connect(path: Path) -> Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", timeout=BUSY_S, isolation_level=None, uri=True
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # what was answered survives a power cut
    except BaseException:  # the file is no database, or is held by another program
        connection.close()
        raise
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
