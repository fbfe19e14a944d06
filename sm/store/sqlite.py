"""Opens a database that many processes share, and writes to it as a whole or not at all.

It is SQLite in WAL mode: readers and the one writer do not wait for each other. What a killed
process had not committed is gone as a whole.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from sm.base.errors import StateError
from sm.store import lock, sqlite_file
from sm.store.sqlite_file import explain_errors, make_damage_error

BUSY_S = 30.0
"""Time that a writer waits for the others, in seconds."""

Connection = sqlite3.Connection


class DatabaseLayout(Struct, frozen=True):
    """Tables of one of our databases, and the migrations that make them.

    `application` is the `application_id` of our files. Migration n is the statements that lead from
    `user_version` n to n + 1; a released one never changes.
    """

    application: int
    migrations: Sequence[Sequence[str]]

    @property
    def version(self) -> int:
        """The newest version."""
        return len(self.migrations)

    def is_behind(self, connection: Connection, path: Path) -> bool:
        """Say whether something must be done before the database can be used; change nothing.

        Raises:
            StateError: it belongs to another program, or to a newer version.

        """
        with transaction(connection, writes=False):  # another process may be making it right now
            version = self.find_version(connection, path)
        if version > self.version:
            raise StateError(
                f"'{path}' was made by a newer sm (version {version}, this one knows "
                f"{self.version}): update sm; it was not touched"
            )
        return version < self.version

    def find_version(self, connection: Connection, path: Path) -> int:
        """Return which version the database is of; 0 if it is empty.

        Raises:
            StateError: it belongs to another program.

        """
        if read_pragma(connection, "application_id") == self.application:
            return read_pragma(connection, "user_version")
        if not _is_empty(connection):
            raise StateError(
                f"'{path}' is the database of another program: name another file, it was not "
                "touched"
            )
        return 0

    def bring_up_to_date(self, connection: Connection, path: Path) -> None:
        """Bring it to the newest version; called by one process at a time. Errors as above."""
        connection.execute("PRAGMA journal_mode = WAL")
        with transaction(connection):
            self.migrate(connection, self.find_version(connection, path))
            self.note_version(connection)

    def migrate(self, connection: Connection, version: int) -> None:
        """Make the tables of `version` those of the newest one."""
        for statements in self.migrations[version:]:
            for statement in statements:
                connection.execute(statement)

    def note_version(self, connection: Connection) -> None:
        """Note in the database that it is ours, and of the newest version."""
        connection.execute(f"PRAGMA application_id = {self.application}")
        connection.execute(f"PRAGMA user_version = {self.version}")


@contextlib.contextmanager
def open_shared(path: Path, layout: DatabaseLayout) -> Iterator[Connection]:
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
            if layout.is_behind(connection, path):
                with lock.hold(path.with_name(f"{path.name}.lock"), timeout_s=BUSY_S):
                    if layout.is_behind(connection, path):  # unless another process was first
                        layout.bring_up_to_date(connection, path)
            yield connection


def check_shared(path: Path, layout: DatabaseLayout) -> None:
    """Check that the existing database can be used; change nothing.

    Raises:
        StateError, TemporaryError: as `open_shared`.

    """
    with explain_errors(path, BUSY_S):
        sqlite_file.check_folder(path.parent)
        sqlite_file.check_file(path)
        with contextlib.closing(connect(path)) as connection:
            layout.is_behind(connection, path)
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise make_damage_error(path)


def _is_empty(connection: Connection) -> bool:
    (things,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return not (
        things
        or read_pragma(connection, "application_id")
        or read_pragma(connection, "user_version")
    )


def connect(path: Path) -> Connection:
    """Open an existing database.

    Raises:
        sqlite3.Error: the file is no database, or another program holds it.

    """
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


def connect_to_read(path: Path, wait_s: float) -> Connection:
    """Open an existing database to read from it, in a third of the time.

    Raises:
        sqlite3.Error: it cannot be opened.

    """
    place = f"{path.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(place, timeout=wait_s, isolation_level=None, uri=True)


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


def read_pragma(connection: Connection, name: str) -> int:
    """Return the number that a pragma has."""
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
