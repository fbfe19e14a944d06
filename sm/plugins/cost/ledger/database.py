"""Tables of the ledger's database, and how they came about.

The sums are kept beside the entries by SQLite itself, in the transaction that changes an entry: so
they are never behind, whoever is killed, and showing them takes no look at the entries.
"""

from __future__ import annotations

from collections.abc import Sequence

from sm.plugins.cost.ledger import scopes
from sm.store.sqlite import DatabaseLayout

APPLICATION = 0x736D636F
"""`application_id` of our files: "smco"."""

FIRST_GROUPS = ("day", "project", "issue", "client", "model", "agent", "plan")
SESSION_GROUPS = ("day", "project", "issue", "session", "client", "model", "agent", "plan")
GROUPS = (*SESSION_GROUPS, "host")
COUNTS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "searches")


def _list_summands(row: str) -> dict[str, str]:
    """List what an entry adds to each sum."""
    return {
        "requests": f"{row}.certainty < 2",
        **{count: f"{row}.{count}" for count in COUNTS},
        "price": f"coalesce({row}.price, 0)",
        "unpriced": f"{row}.price IS NULL AND {row}.certainty < 2",
        "at_least": f"{row}.certainty = 1",
        "unknown": f"{row}.certainty = 2",
    }


def _add(row: str, sign: str, groups: Sequence[str]) -> str:
    """The statement that adds an entry to its sums, or takes it away."""
    summands = _list_summands(row)
    names = ", ".join((*groups, *summands))
    values = ", ".join(
        (*(f"{row}.{group}" for group in groups), *(f"{sign}({one})" for one in summands.values()))
    )
    grown = ", ".join(f"{name} = {name} + excluded.{name}" for name in summands)
    return (  # all of them are names of ours
        f"INSERT INTO sums ({names}) VALUES ({values}) "  # noqa: S608 - names of ours
        f"ON CONFLICT ({', '.join(groups)}) DO UPDATE SET {grown};"
    )


def _list_triggers(groups: Sequence[str]) -> tuple[str, ...]:
    """List the triggers that keep the sums by these groups."""
    added, removed = _add("new", "", groups), _add("old", "-", groups)
    return (
        f"CREATE TRIGGER request_added AFTER INSERT ON requests BEGIN {added} END",
        f"CREATE TRIGGER request_removed AFTER DELETE ON requests BEGIN {removed} END",
        f"CREATE TRIGGER request_changed AFTER UPDATE ON requests BEGIN {removed} {added} END",
    )


FIRST = (
    """
    CREATE TABLE requests (
        key TEXT PRIMARY KEY,
        at REAL NOT NULL,
        day TEXT NOT NULL,
        project TEXT NOT NULL,
        issue INTEGER NOT NULL,
        session TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        context TEXT NOT NULL,
        agent TEXT NOT NULL,
        client TEXT NOT NULL,
        model TEXT NOT NULL,
        plan INTEGER NOT NULL,
        input INTEGER NOT NULL,
        output INTEGER NOT NULL,
        cache_read INTEGER NOT NULL,
        cache_write_5m INTEGER NOT NULL,
        cache_write_1h INTEGER NOT NULL,
        searches INTEGER NOT NULL,
        certainty INTEGER NOT NULL,
        source TEXT NOT NULL,
        settles TEXT NOT NULL,
        price INTEGER,
        currency TEXT NOT NULL,
        priced_by TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX requests_settling ON requests(settles) WHERE settles != ''",
    """
    CREATE INDEX requests_unpriced ON requests(priced_by)
    WHERE price IS NULL AND certainty < 2
    """,
    """
    CREATE TABLE sums (
        day TEXT NOT NULL,
        project TEXT NOT NULL,
        issue INTEGER NOT NULL,
        client TEXT NOT NULL,
        model TEXT NOT NULL,
        agent TEXT NOT NULL,
        plan INTEGER NOT NULL,
        requests INTEGER NOT NULL,
        input INTEGER NOT NULL,
        output INTEGER NOT NULL,
        cache_read INTEGER NOT NULL,
        cache_write_5m INTEGER NOT NULL,
        cache_write_1h INTEGER NOT NULL,
        searches INTEGER NOT NULL,
        price INTEGER NOT NULL,
        unpriced INTEGER NOT NULL,
        at_least INTEGER NOT NULL,
        unknown INTEGER NOT NULL,
        PRIMARY KEY (day, project, issue, client, model, agent, plan)
    ) WITHOUT ROWID
    """,
    *_list_triggers(FIRST_GROUPS),
    """
    CREATE TABLE files (
        path TEXT PRIMARY KEY,
        session TEXT NOT NULL,
        reader TEXT NOT NULL,
        owner TEXT NOT NULL,
        position INTEGER NOT NULL,
        before TEXT NOT NULL,
        read_at REAL NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX files_of_session ON files(session)",
    "CREATE INDEX files_read ON files(read_at)",
)

OWN = (
    f"""
    CREATE TABLE own (
        context TEXT NOT NULL,
        at REAL NOT NULL,
        model TEXT NOT NULL,
        begun REAL NOT NULL,
        session TEXT NOT NULL,
        owner TEXT NOT NULL,
        {" ".join(f"{count} INTEGER NOT NULL," for count in COUNTS)}
        price INTEGER,
        PRIMARY KEY (context, at, model)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE starts (
        context TEXT NOT NULL,
        at REAL NOT NULL,
        how TEXT NOT NULL,
        PRIMARY KEY (context, at)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX requests_context ON requests(context)",
)
"""Tables of what the clients have counted themselves, and when their processes began."""

_SUMMED = _list_summands("requests")

SESSIONS = (
    *(f"DROP TRIGGER request_{done}" for done in ("added", "removed", "changed")),
    "DROP TABLE sums",
    f"""
    CREATE TABLE sums (
        day TEXT NOT NULL,
        project TEXT NOT NULL,
        issue INTEGER NOT NULL,
        session TEXT NOT NULL,
        client TEXT NOT NULL,
        model TEXT NOT NULL,
        agent TEXT NOT NULL,
        plan INTEGER NOT NULL,
        {", ".join(f"{name} INTEGER NOT NULL" for name in _SUMMED)},
        PRIMARY KEY (day, project, issue, session, client, model, agent, plan)
    ) WITHOUT ROWID
    """,
    f"""
    INSERT INTO sums ({", ".join((*SESSION_GROUPS, *_SUMMED))})
    SELECT {", ".join(SESSION_GROUPS)}, {", ".join(f"sum({one})" for one in _SUMMED.values())}
    FROM requests GROUP BY {", ".join(SESSION_GROUPS)}
    """,  # noqa: S608 - names of ours
    "CREATE INDEX sums_of_issue ON sums(project, issue)",
    "CREATE INDEX sums_of_session ON sums(session)",
    *_list_triggers(SESSION_GROUPS),
)
"""A sum of each session, and a quick way to those of one issue or session."""

ASK_TO_COMPARE = "INSERT INTO to_compare VALUES ({}.context) ON CONFLICT DO NOTHING;"

COMPARED = (
    """
    CREATE TABLE compared (
        context TEXT NOT NULL,
        model TEXT NOT NULL,
        at REAL NOT NULL,
        first_day TEXT NOT NULL,
        last_day TEXT NOT NULL,
        project TEXT NOT NULL,
        issue INTEGER NOT NULL,
        agent TEXT NOT NULL,
        requests INTEGER NOT NULL,
        price INTEGER NOT NULL,
        ours INTEGER,
        PRIMARY KEY (context, model)
    ) WITHOUT ROWID
    """,
    "CREATE TABLE to_compare (context TEXT PRIMARY KEY) WITHOUT ROWID",
    "INSERT INTO to_compare SELECT DISTINCT context FROM own",
    *(
        f"CREATE TRIGGER own_{done} AFTER {event} ON own BEGIN {ASK_TO_COMPARE.format('new')} END"
        for done, event in (("added", "INSERT"), ("changed", "UPDATE"))
    ),
    *(
        f"CREATE TRIGGER request_{done}_of_own AFTER {event} ON requests "  # noqa: S608 - names of ours
        f"WHEN EXISTS (SELECT 1 FROM own WHERE context = {row}.context) "
        f"BEGIN {ASK_TO_COMPARE.format(row)} END"
        for done, event, row in (
            ("added", "INSERT", "new"),
            ("changed", "UPDATE", "new"),
            ("removed", "DELETE", "old"),
        )
    ),
)
"""Tables of the clients' prices, as `client_prices.py` writes them, and where it is due."""

NOW_MS = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
"""Milliseconds since 1970 (sqlite.org, "Date And Time Functions": julianday)."""


def _note(row: str) -> str:
    """The statement that notes a change of an entry.

    Numbers grow like the clock: a ledger that was put back from a copy gives none a second time.
    """
    last = f"(SELECT max(number) FROM changes WHERE project = {row}.project)"  # noqa: S608 - ours
    return (
        f"INSERT INTO changes VALUES ({row}.key, {row}.project, "  # noqa: S608 - names of ours
        f"max(coalesce({last}, 0) + 1, {NOW_MS})) "
        "ON CONFLICT (key) DO UPDATE SET number = excluded.number;"
    )


def _follow(event: str, row: str) -> str:
    return (
        f"CREATE TRIGGER request_to_tell_on_{event.lower()} AFTER {event} "  # noqa: S608 - ours
        f"ON requests WHEN {row}.host = '' "
        f"AND EXISTS (SELECT 1 FROM told WHERE project = {row}.project) "
        f"BEGIN {_note(row)} END"
    )


SHARED = (
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
"""Tables that keep ledgers of machines alike. On a node `changes` has the entries that another
installation has not heard of yet, in the order of their last change. SQLite keeps it in the
transaction that changes an entry, for the projects in `told` alone: where nobody asks, nothing is
written. At home `heard` says how far that is known."""

HOSTS = (
    "ALTER TABLE requests ADD COLUMN host TEXT NOT NULL DEFAULT ''",
    *(f"DROP TRIGGER request_{done}" for done in ("added", "removed", "changed")),
    "DROP INDEX sums_of_issue",
    "DROP INDEX sums_of_session",
    "ALTER TABLE sums RENAME TO sums_without_host",
    f"""
    CREATE TABLE sums (
        day TEXT NOT NULL,
        project TEXT NOT NULL,
        issue INTEGER NOT NULL,
        session TEXT NOT NULL,
        client TEXT NOT NULL,
        model TEXT NOT NULL,
        agent TEXT NOT NULL,
        plan INTEGER NOT NULL,
        host TEXT NOT NULL,
        {", ".join(f"{name} INTEGER NOT NULL" for name in _SUMMED)},
        PRIMARY KEY (day, project, issue, session, client, model, agent, plan, host)
    ) WITHOUT ROWID
    """,
    f"""
    INSERT INTO sums ({", ".join((*SESSION_GROUPS, "host", *_SUMMED))})
    SELECT {", ".join(SESSION_GROUPS)}, '', {", ".join(_SUMMED)} FROM sums_without_host
    """,  # noqa: S608 - names of ours
    "DROP TABLE sums_without_host",
    "CREATE INDEX sums_of_issue ON sums(project, issue)",
    "CREATE INDEX sums_of_session ON sums(session)",
    *_list_triggers(GROUPS),
    *scopes.HERE_ALONE,
    *SHARED,
)
"""On which machine a request was made, '' for this one; and what machines tell one another."""

MIGRATIONS = (FIRST, OWN, SESSIONS, scopes.STATEMENTS, COMPARED, HOSTS)
LAYOUT = DatabaseLayout(APPLICATION, MIGRATIONS)
