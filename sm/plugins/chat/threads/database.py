"""Makes, opens and updates the database file of the bridge, which many processes share.

It is SQLite in WAL mode: readers and the one writer do not wait for each other. What a killed
process had not committed is gone as a whole.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from sm.base.errors import StateError
from sm.plugins.chat.threads import takeover
from sm.store.sqlite import (
    Connection,
    Layout,
    check_shared,
    is_older,
    make_foreign_error,
    open_shared,
    read_pragma,
    transaction,
)

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


def open_database(path: Path) -> AbstractContextManager[Connection]:
    """Open the database at `path`, as `open_shared` does; for errors see there."""
    return open_shared(path, LAYOUT)


def check(path: Path) -> None:
    """Check that the existing database can be used; for errors see `check_shared`."""
    check_shared(path, LAYOUT)


def _is_behind(connection: Connection, path: Path) -> bool:
    """Say whether something must be done before the database can be used.

    Raises:
        StateError: it belongs to another program, or to a newer version.

    """
    with transaction(connection, writes=False):  # another process may be making it right now
        version = _find_version(connection, path)
    return is_older(path, version, VERSION)


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
        raise make_foreign_error(path)
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


LAYOUT = Layout(_is_behind, _bring_up_to_date)
