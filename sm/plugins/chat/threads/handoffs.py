"""The five operations on threads, each of them one transaction."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from sm.base.decoder import convert
from sm.base.errors import SmError, UsageError
from sm.plugins.chat.threads import database
from sm.plugins.chat.threads.records import (
    EntryType,
    HandoffClient,
    HandoffEntry,
    HandoffRecord,
    HandoffStatus,
    HandoffThread,
    make_id,
)
from sm.store.sqlite import open_shared, transaction
from sm.store.sqlite_file import RowError

Record = TypeVar("Record", HandoffRecord, HandoffEntry)

# Another program that uses the database, too, may leave columns empty, and write times otherwise.
HANDOFF = """
SELECT id, title, project, coalesce(chat_last_seen, 0), coalesce(code_last_seen, 0),
    coalesce(status, 'active'),
    coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', created_at), CAST(created_at AS TEXT), ''),
    coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', updated_at), CAST(updated_at AS TEXT), '')
FROM handoffs WHERE id = ?
"""
BEGUN = """
INSERT INTO handoffs (id, title, project, status, created_at, updated_at)
VALUES (?, ?, ?, 'active', ?, ?)
"""
TOUCHED = "UPDATE handoffs SET updated_at = ? WHERE id = ?"
CLOSED = "UPDATE handoffs SET status = 'completed', updated_at = ? WHERE id = ?"

ENTRIES = """
SELECT seq, handoff_id, from_client, type, content,
    coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', created_at), CAST(created_at AS TEXT), '')
FROM handoff_entries
WHERE handoff_id = ? AND seq > ? AND from_client = coalesce(?, from_client) ORDER BY seq
"""
KEYED = """
SELECT seq, handoff_id, from_client, type, content, created_at
FROM handoff_entries WHERE handoff_id = ? AND key = ?
"""
APPENDED = """
INSERT INTO handoff_entries (handoff_id, from_client, type, content, created_at, key)
VALUES (?, ?, ?, ?, ?, ?)
"""
WIPED = "DELETE FROM handoff_entries WHERE handoff_id = ?"
LATEST = "SELECT coalesce(max(seq), 0) FROM handoff_entries WHERE handoff_id = ?"

SEEN = {
    HandoffClient.CHAT: """
        UPDATE handoffs SET chat_last_seen = max(coalesce(chat_last_seen, 0), ?) WHERE id = ?
    """,
    HandoffClient.CODE: """
        UPDATE handoffs SET code_last_seen = max(coalesce(code_last_seen, 0), ?) WHERE id = ?
    """,
}


class CompletedError(SmError):
    """The thread was closed."""


@contextlib.contextmanager
def open_bridge(path: Path) -> Iterator[HandoffBridge]:
    """Open the threads in the database at `path`; for errors see `open_shared`."""
    with open_shared(path, database.LAYOUT) as connection:
        yield HandoffBridge(connection)


class HandoffBridge:
    """The threads of one database. `arguments` beside this has checked what callers pass."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Work on an open database."""
        self.connection = connection

    def create(
        self, title: str, content: str, *, project: str | None = None, client: HandoffClient
    ) -> HandoffThread:
        """Begin a thread with `content` as its first entry, of type context."""
        now, ident = _now(), make_id()
        with transaction(self.connection):
            self.connection.execute(BEGUN, (ident, title, project, now, now))
            self._append(ident, EntryType.CONTEXT, content, client)
            return self._thread(ident, client)

    def get(self, ident: str, client: HandoffClient) -> HandoffThread:
        """Return a whole thread, and what is new in it for `client`; move no cursor.

        Raises:
            UsageError: there is none.

        """
        with transaction(self.connection, writes=False):
            return self._thread(ident, client)

    def add(
        self,
        ident: str,
        type_: EntryType,
        content: str,
        client: HandoffClient,
        *,
        key: str | None = None,
    ) -> tuple[HandoffRecord, HandoffEntry]:
        """Append an entry, and move the cursor of `client` to it.

        With a `key` this happens once: a second call returns the existing entry.

        Raises:
            UsageError: there is no such handoff.
            CompletedError: it was closed.

        """
        with transaction(self.connection):
            self.active(ident)
            entry = self._known(ident, key) if key else None
            if entry is None:
                entry = self._append(ident, type_, content, client, key)
            return self.handoff(ident), entry

    def mark_read(self, ident: str, client: HandoffClient) -> HandoffRecord:
        """Move the cursor of `client` to the latest entry.

        Raises:
            UsageError: there is no such handoff.

        """
        with transaction(self.connection):
            self.handoff(ident)
            (latest,) = self.connection.execute(LATEST, (ident,)).fetchone()
            self.connection.execute(SEEN[client], (latest, ident))
            return self.handoff(ident)

    def close(self, ident: str) -> HandoffRecord:
        """Delete the entries, and mark the thread as completed. A completed one stays as it is.

        Raises:
            UsageError: there is no such handoff.

        """
        with transaction(self.connection):
            if self.handoff(ident).status is HandoffStatus.ACTIVE:
                self.connection.execute(WIPED, (ident,))
                self.connection.execute(CLOSED, (_now(), ident))
            return self.handoff(ident)

    def handoff(self, ident: str) -> HandoffRecord:
        """Return the row of a thread.

        Raises:
            UsageError: there is none.

        """
        row = self.connection.execute(HANDOFF, (ident,)).fetchone()
        if row is None:
            raise UsageError(
                f"no handoff '{ident}': check the id with the person, character by character; "
                "there is no list of ids to look it up in"
            )
        return _record(HandoffRecord, row)

    def active(self, ident: str) -> HandoffRecord:
        """Return the row of a thread that is open for entries.

        Raises:
            UsageError: there is none.
            CompletedError: it was closed.

        """
        found = self.handoff(ident)
        if found.status is HandoffStatus.COMPLETED:
            raise CompletedError(
                f"handoff '{ident}' is completed, nothing can be added to it: create a new one "
                "to go on"
            )
        return found

    def entries(
        self, ident: str, *, after: int = 0, by: HandoffClient | None = None
    ) -> tuple[HandoffEntry, ...]:
        """Return the entries after number `after`, in order; with `by` those of one client."""
        rows = self.connection.execute(ENTRIES, (ident, after, by))
        return tuple(_record(HandoffEntry, row) for row in rows)

    def _thread(self, ident: str, client: HandoffClient) -> HandoffThread:
        return HandoffThread(self.handoff(ident), self.entries(ident), client)

    def _known(self, ident: str, key: str) -> HandoffEntry | None:
        row = self.connection.execute(KEYED, (ident, key)).fetchone()
        return _record(HandoffEntry, row) if row else None

    def _append(
        self,
        ident: str,
        type_: EntryType,
        content: str,
        client: HandoffClient,
        key: str | None = None,
    ) -> HandoffEntry:
        now = _now()
        values = (ident, client, type_, content, now, key)
        seq = self.connection.execute(APPENDED, values).lastrowid
        assert seq is not None, "a row was inserted"
        self.connection.execute(SEEN[client], (seq, ident))
        self.connection.execute(TOUCHED, (now, ident))
        return HandoffEntry(seq, ident, client, type_, content, now)


def _record(shape: type[Record], row: tuple[object, ...]) -> Record:
    """Return a row as a record with the columns as fields, in that order."""
    try:
        return convert(dict(zip(shape.__match_args__, row, strict=True)), shape)
    except msgspec.ValidationError as error:  # a damaged page can still be a valid page
        raise RowError(str(error)) from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
