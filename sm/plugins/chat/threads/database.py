"""Makes, opens and updates the database file of the bridge, which many processes share.

It is SQLite in WAL mode: readers and the one writer do not wait for each other. What a killed
process had not committed is gone as a whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sm.base.errors import StateError
from sm.plugins.chat.threads import takeover
from sm.store import lock, sqlite_file
from sm.store.sqlite import BUSY_S, Connection, connect, read_pragma, transaction
from sm.store.sqlite_faults import explain_errors, make_damage_error

APPLICATION = 0x736D6272
"""`application_id` of our files: "smbr"."""

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


@contextlib.contextmanager
def open_database(path: Path) -> Iterator[Connection]:
    """Open the database at `path`, which is made if it is missing; close it afterwards.

    Meanwhile errors of SQLite become our own errors.

    Raises:
        StateError: it is not ours, damaged, of a newer version, or cannot be written.
        TemporaryError: others held it too long, or the disk is full.

    """
    with explain_errors(path, BUSY_S):
        sqlite_file.make_file(path)
        sqlite_file.check_file(path)
        with contextlib.closing(connect(path)) as connection:
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
        sqlite_file.check_folder(path.parent)
        sqlite_file.check_file(path)
        with contextlib.closing(connect(path)) as connection:
            _is_behind(connection, path)
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise make_damage_error(path)


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
    if read_pragma(connection, "application_id") == APPLICATION:
        return read_pragma(connection, "user_version")
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
        things
        or read_pragma(connection, "application_id")
        or read_pragma(connection, "user_version")
    )


def _is_another_programs(connection: Connection) -> bool:
    """Say whether it was made without sm."""
    is_ours = read_pragma(connection, "application_id") == APPLICATION
    return not is_ours and takeover.has_handoffs(connection)


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
