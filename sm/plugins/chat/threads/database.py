"""The tables of the bridge, in a database file of ours or of another program.

It is SQLite in WAL mode: readers and the one writer do not wait for each other. What a killed
process had not committed is gone as a whole.
"""

from __future__ import annotations

from pathlib import Path

from sm.base.errors import StateError
from sm.plugins.chat.threads import takeover
from sm.store.sqlite import Connection, DatabaseLayout, read_pragma, transaction

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


class BridgeLayout(DatabaseLayout, frozen=True):
    """The layout of our own database, and of another program's that has threads already."""

    def find_version(self, connection: Connection, path: Path) -> int:
        """Return which version it is of; 0 if sm has not given it one yet.

        Raises:
            StateError: as `DatabaseLayout`, or its threads cannot be used.

        """
        if read_pragma(connection, "application_id") != self.application:
            if version := takeover.find_version(connection):
                return version
            if takeover.has_handoffs(connection):
                if obstacle := takeover.find_obstacle(connection):
                    raise StateError(
                        f"cannot use the handoffs in '{path}', of another program: {obstacle}, or "
                        "name another file; it was not touched"
                    )
                return 0
        return super().find_version(connection, path)

    def bring_up_to_date(self, connection: Connection, path: Path) -> None:
        """Lead it to the newest version; another program's is copied before, and adopted."""
        if not self._is_another_programs(connection):
            super().bring_up_to_date(connection, path)
            return
        version = self.find_version(connection, path)
        if not version:
            takeover.back_up(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        with transaction(connection):
            if not version:
                takeover.adopt(connection)
                version = 1
            self.migrate(connection, version)
            takeover.note_version(connection, self.version)

    def _is_another_programs(self, connection: Connection) -> bool:
        """Say whether it was made without sm."""
        is_ours = read_pragma(connection, "application_id") == self.application
        return not is_ours and takeover.has_handoffs(connection)


LAYOUT = BridgeLayout(APPLICATION, tuple(one.split(";") for one in MIGRATIONS))
