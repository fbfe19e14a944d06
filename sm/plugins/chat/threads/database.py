"""Makes, opens and updates the database file of the bridge, which many processes share.

It is SQLite in WAL mode: readers and the one writer do not wait for each other. What a killed
process had not committed is gone as a whole.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sm.base.errors import StateError
from sm.plugins.chat.threads import place, takeover
from sm.plugins.chat.threads.faults import explain_errors, make_damage_error
from sm.store import lock

APPLICATION = 0x736D6272
"""`application_id` of our files: "smbr"."""

BUSY_S = 30.0
"""How long a writer waits for the others."""

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
"""Number n leads from `user_version` n to n + 1. A released one never changes."""

VERSION = len(MIGRATIONS)

Connection = sqlite3.Connection


@contextlib.contextmanager
def open_database(path: Path) -> Iterator[Connection]:
    """Open the database at `path`, which is made if it is missing; close it afterwards.

    Meanwhile errors of SQLite become our own errors.

    Raises:
        StateError: it is not ours, damaged, of a newer version, or cannot be written.
        TemporaryError: others held it too long, or the disk is full.

    """
    with explain_errors(path, BUSY_S):
        place.make_file(path)
        place.check_file(path)
        with contextlib.closing(_connect(path)) as connection:
            if _is_behind(connection, path):
                with lock.hold(path.with_name(f"{path.name}.lock"), timeout_s=BUSY_S):
                    _bring_up_to_date(connection, path)
            yield connection


def check(path: Path) -> None:
    """Check that the existing database can be used; change nothing.

    Raises:
        StateError, TemporaryError: as `open_database`.

    """
    with explain_errors(path, BUSY_S):
        place.check_folder(path.parent)
        place.check_file(path)
        with contextlib.closing(_connect(path)) as connection:
            _is_behind(connection, path)
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise make_damage_error(path)


@contextlib.contextmanager
def transaction(connection: Connection, *, writes: bool = True) -> Iterator[None]:
    """Write everything inside or nothing, and read everything of one moment.

    Other writers wait from the start, unless `writes` is False. Inside another transaction it is a
    part of that one.
    """
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # a full disk has already rolled it back
            connection.execute("ROLLBACK")
        raise


def _connect(path: Path) -> Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", timeout=BUSY_S, isolation_level=None, uri=True
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(
            "PRAGMA synchronous = FULL"
        )  # what we have confirmed survives a power cut
    except BaseException:  # the file is no database, or another program holds it
        connection.close()
        raise
    return connection


def _is_behind(connection: Connection, path: Path) -> bool:
    """Say whether something must be done before the database can be used.

    Raises:
        StateError: it belongs to another program, or to a newer version.

    """
    with transaction(connection, writes=False):  # another process may be making it right now
        version = _find_version(connection, path)
    if version > VERSION:
        raise StateError(
            f"'{path}' was made by a newer sm (version {version}, this one knows {VERSION}): "
            "update sm; it was not touched"
        )
    return version < VERSION


def _find_version(connection: Connection, path: Path) -> int:
    """Return which layout the database has; 0 if sm has not given it one yet."""
    if _pragma(connection, "application_id") == APPLICATION:
        return _pragma(connection, "user_version")
    if version := takeover.find_version(connection):
        return version
    if takeover.has_handoffs(connection):
        if obstacle := takeover.find_obstacle(connection):
            raise StateError(
                f"cannot use the handoffs in '{path}', of another program: {obstacle}, or name "
                "another file; it was not touched"
            )
    elif not _is_new(connection):
        raise StateError(
            f"'{path}' is the database of another program: name another file, it was not touched"
        )
    return 0


def _is_new(connection: Connection) -> bool:
    (things,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return not (
        things or _pragma(connection, "application_id") or _pragma(connection, "user_version")
    )


def _is_another_programs(connection: Connection) -> bool:
    """Say whether it was made without sm."""
    is_ours = _pragma(connection, "application_id") == APPLICATION
    return not is_ours and takeover.has_handoffs(connection)


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _bring_up_to_date(connection: Connection, path: Path) -> None:
    if not _is_behind(connection, path):
        return  # another process was first
    version, is_theirs = _find_version(connection, path), _is_another_programs(connection)
    if is_theirs and not version:
        takeover.back_up(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection):
        if is_theirs and not version:
            takeover.adopt(connection)
            version = 1
        for number in range(version, VERSION):
            for statement in MIGRATIONS[number].split(";"):
                connection.execute(statement)
        if is_theirs:
            takeover.note_version(connection, VERSION)
        else:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
