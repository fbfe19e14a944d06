"""Balances of limits, read in a pass from sums and raises: a few rows, and never a long wait."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from sm.base.errors import TemporaryError
from sm.plugins.cost.budget.rules import BudgetLimit, LimitUse, ModelUse, add_up
from sm.plugins.cost.ledger.amount import AmountUnit
from sm.plugins.cost.ledger.database import LAYOUT
from sm.store import sqlite_file
from sm.store.sqlite import Connection, connect_to_read
from sm.store.sqlite_file import explain_errors

WAIT_S = 0.2
"""In WAL mode readers wait for nobody, but for a moment after a kill."""
COLUMNS = ", ".join(ModelUse.__struct_fields__)
ROWS = f"SELECT ?, {COLUMNS} FROM used WHERE scope = ? AND name BETWEEN ? AND ?"  # noqa: S608 - names of ours
RAISED = "SELECT ?, sum(amount) FROM raises WHERE scope = ? AND name = ? AND unit = ?"
ISSUES = """
    SELECT name, sum(tokens), sum(price) FROM used
    WHERE scope = 'issue' AND name > ? || '#' AND name < ? || '$' GROUP BY name
"""
"""The next character behind `#` is `$`."""


class Balances:
    """The sums of one open ledger; None stands for one that is not there, and has none."""

    def __init__(self, connection: Connection | None) -> None:
        """Read from an open database."""
        self.connection = connection
        self._issues: dict[tuple[str, AmountUnit], dict[str, int]] = {}

    def list_rows(self, limits: Sequence[BudgetLimit]) -> list[list[ModelUse]]:
        """List what the requests of each limit have used, by model."""
        found = list[list[ModelUse]]([] for _ in limits)
        for number, *row in self._ask_for_each(
            ROWS, ((one.scope, one.name, one.last_name or one.name) for one in limits)
        ):
            found[number].append(ModelUse(*row))
        return found

    def list_raised(self, limits: Sequence[BudgetLimit]) -> list[int]:
        """List what people have raised each limit by."""
        asked = ((limit.scope, limit.name, limit.amount.unit) for limit in limits)
        found = dict(self._ask_for_each(RAISED, asked))
        return [found.get(number) or 0 for number in range(len(limits))]

    def _ask_for_each(
        self, query: str, values: Iterable[tuple[object, ...]]
    ) -> Iterable[tuple[Any, ...]]:
        """The rows of a query for each of these values, behind their number, all at once."""
        numbered = [(number, *each) for number, each in enumerate(values)]
        if self.connection is None or not numbered:
            return ()
        united = " UNION ALL ".join([query] * len(numbered))
        return self.connection.execute(united, [one for each in numbered for one in each])

    def list_issues(self, project: str, unit: AmountUnit) -> dict[str, int]:
        """List what each issue of a project has used, by the name of its sums; read once."""
        if self.connection is None:
            return {}
        key = (project, unit)
        if key not in self._issues:
            at = 2 if unit is AmountUnit.USD else 1
            rows = self.connection.execute(ISSUES, (project, project))
            self._issues[key] = {row[0]: row[at] for row in rows}
        return self._issues[key]


def measure(
    book: Balances, limits: list[BudgetLimit], sharers: int
) -> Iterator[tuple[BudgetLimit, LimitUse]]:
    """Each limit with what it was raised by, and what its requests have used."""
    of_each = zip(limits, book.list_raised(limits), book.list_rows(limits), strict=True)
    for limit, raised, rows in of_each:
        shared = sharers if limit.is_shared else 1
        # Of a limit that was told, a raise is told with it.
        raised_by = limit.raised if limit.is_told else raised
        now = structs.replace(limit, raised=raised_by, sharers=max(1, shared))
        yield now, add_up([*rows, *limit.elsewhere], limit)


@contextlib.contextmanager
def open_balances(path: Path) -> Iterator[Balances]:
    """Open the ledger at `path` to read from it; nothing is made or changed.

    Raises:
        StateError: it is not ours, damaged, or of a newer version.
        TemporaryError: it is of an older version, or others hold it.

    """
    if not sqlite_file.is_there(path):
        yield Balances(None)
        return
    with explain_errors(path, WAIT_S):
        sqlite_file.check_folder(path.parent)
        sqlite_file.check_file(path)
        with contextlib.closing(connect_to_read(path, WAIT_S)) as connection:
            if LAYOUT.is_behind(connection, path):
                raise TemporaryError(f"'{path}' is being brought up to date")
            yield Balances(connection)
