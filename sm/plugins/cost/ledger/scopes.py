"""Sums by what a limit is for (its scope): tables of budgets in the database of the ledger.

`used` has what each limit looks at: sums by issue, session, day and project, and by model, kept by
SQLite in the transaction that changes an entry. So a pass reads a few rows, however many requests
there were. `raises` has what people have decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from sm.base.issue_id import IssueId


class Scope(StrEnum):
    """Scope of a limit."""

    ISSUE = "issue"
    SESSION = "session"
    DAY = "day"
    PROJECT_DAY = "project-day"
    PROJECT = "project"


NAMES = {
    Scope.ISSUE: "{row}.project || '#' || {row}.issue",
    Scope.SESSION: "{row}.session || '@' || CAST({row}.begun AS INTEGER)",
    Scope.DAY: "{row}.day",
    Scope.PROJECT_DAY: "{row}.project || ' ' || {row}.day",
    Scope.PROJECT: "{row}.project",
}
"""Names of the sums of a scope; those of a pass are made by `name_` below."""
CONDITIONS = {
    Scope.ISSUE: "{row}.issue != 0",
    Scope.PROJECT_DAY: "{row}.project != ''",
    Scope.PROJECT: "{row}.project != ''",
}
HERE = {**CONDITIONS, Scope.SESSION: "{row}.host = ''"}
"""A session elsewhere has a name that one here may have as well."""
TOKENS = " + ".join(
    f"{{row}}.{name}"
    for name in ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
)
ADDED = {
    "known": "{row}.certainty < 2",
    "tokens": TOKENS,
    "price": "coalesce({row}.price, 0)",
    "unclear": "{row}.certainty > 0",
    "pending": "{row}.price IS NULL AND {row}.certainty < 2 AND {row}.priced_by = ''",
    "unpriced": "{row}.price IS NULL AND {row}.certainty < 2 AND {row}.priced_by != ''",
}
"""Columns that an entry adds to. `known`: what it has used is known; `unclear`: that is not all
that is to be known; `pending`: its price was not looked up yet; `unpriced`: it has none."""
LARGEST = {"largest_tokens": TOKENS, "largest_price": "coalesce({row}.price, 0)"}
"""Columns of the largest entry; they only grow, as an upper bound may."""


def name_issue(project: str, issue: IssueId) -> str:
    """The name of an issue's sums."""
    return f"{project}#{issue}"


def name_session(session: str, begun: float) -> str:
    """The name of a session's sums; another session may get the same name later."""
    return f"{session}@{int(begun)}"


def name_project_day(project: str, day: str) -> str:
    """The name of the sums of a project's day."""
    return f"{project} {day}"


def _list_sources(row: str, conditions: Mapping[Scope, str]) -> str:
    """A query for the scopes that an entry is in, and its name in each."""
    return " UNION ALL ".join(
        f"SELECT '{scope}' AS scope, {name.format(row=row)} AS name "
        f"WHERE {conditions.get(scope, 'true').format(row=row)}"
        for scope, name in NAMES.items()
    )


def _add(row: str, conditions: Mapping[Scope, str], *, but: str = "") -> str:
    """The statement that adds an entry to its sums, less what it was before."""
    values = [f"({one.format(row=row)})" for one in ADDED.values()]
    if but:
        before = (one.format(row=but) for one in ADDED.values())
        values = [f"{value} - ({one})" for value, one in zip(values, before, strict=True)]
    return _put(row, values, conditions)


def _take(row: str, conditions: Mapping[Scope, str]) -> str:
    """The statement that takes an entry away from its sums."""
    return _put(row, [f"-({one.format(row=row)})" for one in ADDED.values()], conditions)


def _put(row: str, values: list[str], conditions: Mapping[Scope, str]) -> str:
    values = values + [one.format(row=row) for one in LARGEST.values()]
    grown = [f"{name} = {name} + excluded.{name}" for name in ADDED]
    grown += [f"{name} = max({name}, excluded.{name})" for name in LARGEST]
    return (
        f"INSERT INTO used (scope, name, model, {', '.join((*ADDED, *LARGEST))}) "  # noqa: S608 - names of ours
        f"SELECT scope, name, {row}.model, {', '.join(values)} "
        f"FROM ({_list_sources(row, conditions)}) "
        f"WHERE true ON CONFLICT (scope, name, model) DO UPDATE SET {', '.join(grown)};"
    )


def _fill(scope: Scope) -> str:
    """The statement that sums up the entries that are there already."""
    values = [f"sum({one.format(row='requests')})" for one in ADDED.values()]
    values += [f"max({one.format(row='requests')})" for one in LARGEST.values()]
    return (
        f"INSERT INTO used SELECT '{scope}', {NAMES[scope].format(row='requests')} AS name, "  # noqa: S608 - names of ours
        f"model, {', '.join(values)} FROM requests "
        f"WHERE {CONDITIONS.get(scope, 'true').format(row='requests')} GROUP BY name, model"
    )


def _list_triggers(conditions: Mapping[Scope, str]) -> tuple[str, ...]:
    """List the triggers that keep the sums of entries for which these conditions hold."""
    return (
        f"CREATE TRIGGER request_used AFTER INSERT ON requests BEGIN {_add('new', conditions)} END",
        "CREATE TRIGGER request_not_used AFTER DELETE ON requests "
        f"BEGIN {_take('old', conditions)} END",
        f"""
    CREATE TRIGGER request_used_more AFTER UPDATE ON requests WHEN old.model = new.model
    BEGIN {_add("new", conditions, but="old")} END
    """,
        f"""
    CREATE TRIGGER request_used_otherwise AFTER UPDATE ON requests WHEN old.model != new.model
    BEGIN {_take("old", conditions)} {_add("new", conditions)} END
    """,
    )


TRIGGERS = ("used", "not_used", "used_more", "used_otherwise")

STATEMENTS = (
    "ALTER TABLE requests ADD COLUMN begun REAL NOT NULL DEFAULT 0",
    f"""
    CREATE TABLE used (
        scope TEXT NOT NULL,
        name TEXT NOT NULL,
        model TEXT NOT NULL,
        {", ".join(f"{name} INTEGER NOT NULL" for name in (*ADDED, *LARGEST))},
        PRIMARY KEY (scope, name, model)
    ) WITHOUT ROWID
    """,
    *map(_fill, Scope),
    *_list_triggers(CONDITIONS),
    """
    CREATE TABLE raises (
        id INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        scope TEXT NOT NULL,
        name TEXT NOT NULL,
        unit TEXT NOT NULL,
        amount INTEGER NOT NULL,
        by TEXT NOT NULL
    )
    """,
    "CREATE INDEX raises_of ON raises(scope, name)",
)
"""Bring a ledger without budgets up to date."""

HERE_ALONE = (*(f"DROP TRIGGER request_{name}" for name in TRIGGERS), *_list_triggers(HERE))
"""Once entries may be of other machines, only those of this one are in the sums of a session."""
