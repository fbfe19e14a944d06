"""Uses a database with the two tables of the handoff system that sm did not make.

It may be that of a server of the user's own, which keeps more in it. All of that stays as it is. sm
adds what it needs. A copy of the original file stays beside it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path

from sm.base.errors import StateError
from sm.plugins.chat.threads.records import EntryType, HandoffClient, HandoffStatus
from sm.store.files import create_exclusive, discard

COLUMNS = {
    "handoffs": {
        *("id", "title", "project", "chat_last_seen", "code_last_seen"),
        *("status", "created_at", "updated_at"),
    },
    "handoff_entries": {"seq", "handoff_id", "from_client", "type", "content", "created_at"},
}
KEYS = {"handoffs": "id", "handoff_entries": "seq"}
UNSET = {"chat_last_seen", "code_last_seen", "seq"}
"""Columns of the document that a new row of ours leaves to the database."""
EMPTY = {"project"}
"""Columns that may be empty in a new row of ours."""
ADDED = {"handoff_bindings", "bindings_of_issue", "entries_once", "sm_layout"}
"""Tables and indexes that sm adds."""

NOTED = """
CREATE TABLE sm_layout (version INTEGER NOT NULL);
INSERT INTO sm_layout VALUES (1);
CREATE INDEX IF NOT EXISTS entries_of_handoff ON handoff_entries(handoff_id, seq);
"""
MEANINGLESS = (
    ("SELECT status FROM handoffs WHERE status NOT IN (?, ?)", HandoffStatus),
    ("SELECT from_client FROM handoff_entries WHERE from_client NOT IN (?, ?)", HandoffClient),
    ("SELECT type FROM handoff_entries WHERE type NOT IN (?, ?, ?, ?, ?, ?)", EntryType),
)
"""Each finds words that mean nothing here, in a column that holds one of a few."""


def find_version(connection: sqlite3.Connection) -> int:
    """Return the layout that sm has given another program's database; 0 for none.

    It has a table of its own: `user_version` and `application_id` belong to that program.
    """
    if "sm_layout" not in _list_names(connection):
        return 0
    return int(connection.execute("SELECT max(version) FROM sm_layout").fetchone()[0] or 0)


def note_version(connection: sqlite3.Connection, version: int) -> None:
    """Note the layout of another program's database."""
    connection.execute("UPDATE sm_layout SET version = ?", (version,))


def has_handoffs(connection: sqlite3.Connection) -> bool:
    """Say whether the database has these two tables, whatever else it has."""
    return all(
        {column[1] for column in _columns(connection, table)} >= COLUMNS[table] for table in COLUMNS
    )


def find_obstacle(connection: sqlite3.Connection) -> str:
    """Say why sm cannot use the database, which has the two tables; '' if it can."""
    for table, key in KEYS.items():
        columns = _columns(connection, table)
        keys = [(name, kind.upper()) for _, name, kind, _, _, is_key in columns if is_key]
        if [name for name, _ in keys] != [key]:
            return f"'{key}' is not the primary key of {table}"
        if table == "handoff_entries" and keys != [(key, "INTEGER")]:
            return f"'{key}' of {table} is no INTEGER PRIMARY KEY, which SQLite counts up"
        for _, name, _, is_needed, default, is_key in columns:
            is_given = name in COLUMNS[table] - UNSET
            if is_needed and (name in EMPTY or (default is None and not is_key and not is_given)):
                return f"'{name}' of {table} needs a value that sm does not have: give a default"
        if table == "handoff_entries" and any(column[1] == "key" for column in columns):
            return f"{table} has a column 'key', which sm would add"
    taken = sorted(_list_names(connection) & ADDED)
    return f"it has '{taken[0]}', which sm would add" if taken else ""


def _columns(
    connection: sqlite3.Connection, table: str
) -> list[tuple[int, str, str, int, object, int]]:
    """Return number, name, type, NOT NULL, default and key of each; none of what is no table."""
    is_table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
    if not connection.execute(is_table, (table,)).fetchone():
        return []
    return connection.execute(f"PRAGMA table_info({table})").fetchall()


def _list_names(connection: sqlite3.Connection) -> set[str]:
    """Return the names of all tables and indexes."""
    return {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def back_up(connection: sqlite3.Connection, path: Path) -> Path:
    """Copy the database to a file beside it, which only its owner can read.

    Raises:
        StateError: the database cannot be taken over, or the file cannot be made.

    """
    check_words(connection, path)
    copy = path.with_name(f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}.backup")
    if not create_exclusive(copy):
        raise StateError(f"cannot take over '{path}': '{copy}' is there already: move it away")
    try:
        with contextlib.closing(sqlite3.connect(copy)) as target:
            connection.backup(target)
        with copy.open("rb") as file:
            os.fsync(file.fileno())
    except BaseException:
        discard(copy)
        raise
    return copy


def list_copies(path: Path) -> list[Path]:
    """Return the copies of the database at `path`, oldest first."""
    return sorted(path.parent.glob(f"{path.name}.*.backup"))


def adopt(connection: sqlite3.Connection) -> None:
    """Note that the tables have the first layout of sm. The caller opens the transaction."""
    for statement in NOTED.split(";"):
        connection.execute(statement)


def check_words(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a database with words that sm would take for damage.

    Raises:
        StateError: a row has a word that sm does not know.

    """
    for query, words in MEANINGLESS:
        if row := connection.execute(query, tuple(words)).fetchone():
            raise StateError(
                f"cannot take over '{path}': a row has '{row[0]}' where only {', '.join(words)} "
                "can be: mend that row; nothing was changed"
            )
