"""Opens a database that many processes share, and writes to it as a whole or not at all.

It is SQLite in WAL mode: readers and the one writer do not wait for each other. What a killed
process had not committed is gone as a whole.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

BUSY_S = 30.0
"""How long a writer waits for the others."""

Connection = sqlite3.Connection


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
    """The number that a pragma has."""
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
