"""On a node: says what has changed in its ledger since it was asked last."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from sm.base.decoding import convert
from sm.plugins.cost.budget.rules import Row
from sm.plugins.cost.ledger.database import NOW_MS
from sm.plugins.cost.ledger.entries import Ledger
from sm.plugins.cost.sync.wire import ROOM, Account, Change, Inquiry, Request, Span, Totals
from sm.store.sqlite import transaction

IDENTITY = "SELECT ident FROM identity"
IS_TOLD = "SELECT 1 FROM told WHERE project = ?"
TELL = "INSERT INTO told VALUES (?) ON CONFLICT DO NOTHING"
ALL = f"""
    INSERT INTO changes
    SELECT key, project, {NOW_MS} + row_number() OVER (ORDER BY at)
    FROM requests WHERE project = ? AND host = ''
"""  # noqa: S608 - names of ours
CHANGES = f"""
    SELECT changes.number, changes.key, requests.key IS NULL,
        {", ".join(f"requests.{name}" for name in Request.__struct_fields__)}
    FROM changes LEFT JOIN requests ON requests.key = changes.key AND requests.host = ''
    WHERE changes.project = ? AND changes.number > ? ORDER BY changes.number
"""  # noqa: S608 - names of ours
SUMS = f"""
    SELECT {", ".join(Row.__struct_fields__)} FROM used WHERE scope = ? AND name BETWEEN ? AND ?
"""  # noqa: S608 - names of ours


def read_identity(ledger: Ledger) -> str:
    """What the ledger is called, for good. A copy of it is called the same."""
    (ident,) = ledger.connection.execute(IDENTITY).fetchone()
    return str(ident)


def account(ledger: Ledger, asked: Inquiry) -> Account:
    """Return what is asked for; from now on changes of these projects are noted."""
    _note_from_now_on(ledger, asked)
    ident = read_identity(ledger)
    is_known = asked.ledger == ident
    room, more = ROOM, False
    found: dict[str, tuple[Change, ...]] = {}
    with transaction(ledger.connection, writes=False):
        for project, number in asked.after.items():
            changes = list[Change]()
            for change, size in _read_changes(ledger, project, number if is_known else 0):
                room -= size
                if room < 0:
                    more = True
                    break
                changes.append(change)
            found[project] = tuple(changes)
        totals = () if more else tuple(_sum_up(ledger, span) for span in asked.spans)
    return Account(ledger=ident, changes=found, more=more, totals=totals)


def _note_from_now_on(ledger: Ledger, asked: Inquiry) -> None:
    unknown = [
        one for one in asked.after if not ledger.connection.execute(IS_TOLD, (one,)).fetchone()
    ]
    if unknown:
        with transaction(ledger.connection):
            for project in unknown:
                if ledger.connection.execute(TELL, (project,)).rowcount > 0:
                    ledger.connection.execute(ALL, (project,))


def _read_changes(ledger: Ledger, project: str, after: int) -> Iterator[tuple[Change, int]]:
    """Each change with its size in bytes; what is too odd to be told is passed over."""
    for number, key, is_gone, *values in ledger.connection.execute(CHANGES, (project, after)):
        try:
            request = None if is_gone else convert(values, Request, strict=False)
        except msgspec.ValidationError:
            continue
        change = Change(number, key, request)
        yield change, len(msgspec.json.encode(change))


def _sum_up(ledger: Ledger, span: Span) -> Totals:
    rows = ledger.connection.execute(SUMS, (span.scope, span.first, span.last))
    return Totals(span, tuple(Row(*row) for row in rows))
