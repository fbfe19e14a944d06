"""Takes over a database with the two tables of the handoff system that sm did not make.

It may come from a server of the user's own. Its rows stay, and sm adds what it needs. A copy of the
original file stays beside it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path

from sm.bridge.records import Client, EntryType, Status
from sm.errors import StateError
from sm.store.files import create_exclusive, discard

COLUMNS = {
    "handoffs": {
        *("id", "title", "project", "chat_last_seen", "code_last_seen"),
        *("status", "created_at", "updated_at"),
    },
    "handoff_entries": {"seq", "handoff_id", "from_client", "type", "content", "created_at"},
}
KEYS = {"handoffs": ("id", "TEXT"), "handoff_entries": ("seq", "INTEGER")}
THINGS = "SELECT type, name FROM sqlite_schema WHERE type <> 'index' AND name NOT LIKE 'sqlite_%'"

# A time gets the format of sm, if SQLite can read it. A missing one becomes the present.
ADOPTED = (
    """
    UPDATE handoffs SET
        chat_last_seen = coalesce(chat_last_seen, 0),
        code_last_seen = coalesce(code_last_seen, 0),
        status = coalesce(status, 'active'),
        created_at = coalesce(strftime(:form, created_at), created_at, strftime(:form, 'now')),
        updated_at = coalesce(strftime(:form, updated_at), updated_at, strftime(:form, 'now'))
    """,
    """
    UPDATE handoff_entries SET
        created_at = coalesce(strftime(:form, created_at), created_at, strftime(:form, 'now'))
    """,
    "CREATE INDEX IF NOT EXISTS entries_of_handoff ON handoff_entries(handoff_id, seq)",
)
FORM = {"form": "%Y-%m-%dT%H:%M:%fZ"}
MEANINGLESS = (
    ("SELECT status FROM handoffs WHERE status NOT IN (?, ?)", Status),
    ("SELECT from_client FROM handoff_entries WHERE from_client NOT IN (?, ?)", Client),
    ("SELECT type FROM handoff_entries WHERE type NOT IN (?, ?, ?, ?, ?, ?)", EntryType),
)
"""Each finds words that mean nothing here, in a column that holds one of a few."""


def fits(connection: sqlite3.Connection) -> bool:
    """Say whether the database has exactly these two tables, as documented."""
    things = connection.execute(THINGS).fetchall()
    return sorted(things) == [("table", name) for name in sorted(COLUMNS)] and all(
        _has_columns(connection, table) for table in COLUMNS
    )


def _has_columns(connection: sqlite3.Connection, table: str) -> bool:
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    keys = [(name, kind.upper()) for _, name, kind, _, _, key in columns if key]
    return {column[1] for column in columns} == COLUMNS[table] and keys == [KEYS[table]]


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
        _flush(copy)
    except BaseException:
        discard(copy)
        raise
    return copy


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def list_copies(path: Path) -> list[Path]:
    """Return the copies of the database at `path`, oldest first."""
    return sorted(path.parent.glob(f"{path.name}.*.backup"))


def adopt(connection: sqlite3.Connection) -> None:
    """Give the tables the first layout of sm. The caller opens the transaction."""
    for statement in ADOPTED:
        connection.execute(statement, FORM if ":form" in statement else {})


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
