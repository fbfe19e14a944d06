"""The tables by which ledgers of several machines are kept alike, in the database of the ledger.

On a node `changes` has the entries that another installation has not heard of yet, in the order of
their last change. SQLite keeps it in the transaction that changes an entry, for the projects in
`told` alone: where nobody asks, nothing is written. At home `heard` says how far that is known.
"""

from __future__ import annotations

NOW_MS = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
"""Milliseconds since 1970 (sqlite.org, "Date And Time Functions": julianday)."""


def _note(row: str) -> str:
    """The statement that notes a change of an entry.

    Numbers grow like the clock: a ledger that was put back from a copy gives none a second time.
    """
    last = f"(SELECT max(number) FROM changes WHERE project = {row}.project)"  # noqa: S608
    return (
        f"INSERT INTO changes VALUES ({row}.key, {row}.project, "  # noqa: S608 - names of ours
        f"max(coalesce({last}, 0) + 1, {NOW_MS})) "
        "ON CONFLICT (key) DO UPDATE SET number = excluded.number;"
    )


def _follow(event: str, row: str) -> str:
    return (
        f"CREATE TRIGGER request_to_tell_on_{event.lower()} AFTER {event} ON requests "  # noqa: S608
        f"WHEN {row}.host = '' AND EXISTS (SELECT 1 FROM told WHERE project = {row}.project) "
        f"BEGIN {_note(row)} END"
    )


EVENTS = (("INSERT", "new"), ("UPDATE", "new"), ("DELETE", "old"))

STATEMENTS = (
    "CREATE TABLE identity (ident TEXT NOT NULL)",
    "INSERT INTO identity VALUES (lower(hex(randomblob(16))))",
    "CREATE TABLE told (project TEXT PRIMARY KEY) WITHOUT ROWID",
    """
    CREATE TABLE changes (
        key TEXT PRIMARY KEY,
        project TEXT NOT NULL,
        number INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX changes_in_order ON changes(project, number)",
    *(
        _follow(event, row)
        for event, row in (("INSERT", "new"), ("UPDATE", "new"), ("DELETE", "old"))
    ),
    """
    CREATE TABLE nodes (
        host TEXT PRIMARY KEY,
        ledger TEXT NOT NULL,
        totals TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE heard (
        host TEXT NOT NULL,
        project TEXT NOT NULL,
        number INTEGER NOT NULL,
        PRIMARY KEY (host, project)
    ) WITHOUT ROWID
    """,
)
