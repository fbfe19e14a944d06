"""Reads sums and raises from the ledger, in a pass: a few rows, and never a long wait."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sm.base.errors import TemporaryError
from sm.plugins.cost.budget.amount import Unit
from sm.plugins.cost.budget.decide import Limit, Row
from sm.plugins.cost.budget.tables import Scope
from sm.store import sqlite_file
from sm.store.sqlite import Connection
from sm.store.sqlite_faults import explain_errors

WAIT_S = 0.2
"""In WAL mode readers wait for nobody, but for a moment after a kill."""
COLUMNS = ", ".join(Row.__struct_fields__)
ROWS = f"SELECT {COLUMNS} FROM used WHERE scope = ? AND name = ?"  # noqa: S608 - names of ours
ROWS_FROM = f"SELECT {COLUMNS} FROM used WHERE scope = ? AND name BETWEEN ? AND ?"  # noqa: S608 - names of ours
RAISED = "SELECT coalesce(sum(amount), 0) FROM raises WHERE scope = ? AND name = ? AND unit = ?"
ISSUES = """
    SELECT name, sum(tokens), sum(price) FROM used
    WHERE scope = 'issue' AND name > ? || '#' AND name < ? || '$' GROUP BY name
"""
"""The next character behind `#` is `$`."""


class Book:
    """The sums of one open ledger; None stands for one that is not there, and has none."""

    def __init__(self, connection: Connection | None) -> None:
        """Read from an open database."""
        self._connection = connection

    def list_rows(self, limit: Limit) -> list[Row]:
        """What a limit's requests have used, by model."""
        if self._connection is None:
            return []
        if limit.last_name:
            names = (limit.scope, limit.name, limit.last_name)
            return [Row(*row) for row in self._connection.execute(ROWS_FROM, names)]
        return [Row(*row) for row in self._connection.execute(ROWS, (limit.scope, limit.name))]

    def find_raised(self, scope: Scope, name: str, unit: Unit) -> int:
        """What people have raised a limit by."""
        if self._connection is None:
            return 0
        (raised,) = self._connection.execute(RAISED, (scope, name, unit)).fetchone()
        return int(raised)

    def list_issues(self, project: str, unit: Unit) -> dict[str, int]:
        """What each issue of a project has used, by the name of its sums."""
        if self._connection is None:
            return {}
        rows = self._connection.execute(ISSUES, (project, project))
        at = 2 if unit is Unit.USD else 1
        return {row[0]: row[at] for row in rows}


@contextlib.contextmanager
def open_book(path: Path) -> Iterator[Book]:
    """Open the ledger at `path` to read from it; nothing is made or changed.

    Raises:
        StateError: it is not ours, damaged, or of a newer version.
        TemporaryError: it is of an older version, or others hold it.

    """
    # The core of a pass has loaded what these import; only budgets come to need it.
    from sm.plugins.cost.database import LAYOUT
    from sm.store.sqlite import connect

    if not sqlite_file.is_there(path):
        yield Book(None)
        return
    with explain_errors(path, WAIT_S):
        sqlite_file.check_folder(path.parent)
        sqlite_file.check_file(path)
        with contextlib.closing(connect(path, WAIT_S)) as connection:
            if LAYOUT.is_behind(connection, path):
                raise TemporaryError(f"'{path}' is being brought up to date")
            yield Book(connection)
