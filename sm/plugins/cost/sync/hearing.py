"""At home: enters what a node tells, and how far it was heard: both or nothing.

An entry keeps the machine that it was first heard of from, and only that one changes it or takes it
away. So what is told again changes nothing: after a kill in between, from a ledger that was made
anew or put back from a copy, by a machine that is called otherwise now.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import msgspec

from sm.base.decoding import decode
from sm.base.foreign import tidy_name
from sm.plugins.cost.budget.rules import Row
from sm.plugins.cost.ledger.database import COUNTS
from sm.plugins.cost.ledger.entries import Ledger, name_day
from sm.plugins.cost.sync.wire import Account, Change, Inquiry, Request, Span, Totals
from sm.store.failpoint import crash_point
from sm.store.sqlite import transaction

NODE = "SELECT ledger, totals FROM nodes WHERE host = ?"
HEARD = "SELECT project, number FROM heard WHERE host = ?"
FORGET = "DELETE FROM heard WHERE host = ?"
KEEP_NODE = """
    INSERT INTO nodes VALUES (?, ?, ?)
    ON CONFLICT (host) DO UPDATE SET ledger = excluded.ledger, totals = excluded.totals
"""
KEEP_HEARD = """
    INSERT INTO heard VALUES (?, ?, ?)
    ON CONFLICT (host, project) DO UPDATE SET number = excluded.number
"""
REMOVE = "DELETE FROM requests WHERE key = ? AND host = ? AND project = ?"
NAMES = ("issue", "session", "attempt", "context", "agent", "client", "model", "plan")
COPIED = (*NAMES, *COUNTS, "certainty", "source", "begun")
PRICED = ("price", "currency", "priced_by")
IS_SAME = " AND ".join(f"excluded.{count} = requests.{count}" for count in (*COUNTS, "model"))
KEEPS_PRICE = f"excluded.price IS NULL AND {IS_SAME}"
"""The node does not know a price that we may have looked up."""
ENTER = f"""
    INSERT INTO requests (key, host, project, at, day, {", ".join((*COPIED, *PRICED))}, settles)
    VALUES ({", ".join("?" * (5 + len(COPIED) + len(PRICED)))}, '')
    ON CONFLICT (key) DO UPDATE SET
        at = excluded.at, day = excluded.day,
        {", ".join(f"{name} = excluded.{name}" for name in COPIED)},
        {", ".join(f"{name} = iif({KEEPS_PRICE}, {name}, excluded.{name})" for name in PRICED)}
    WHERE host = excluded.host AND project = excluded.project
"""  # noqa: S608 - names of ours


class Known(msgspec.Struct, frozen=True):
    """How far a node was heard: of which ledger, by project, and what its totals were then."""

    ledger: str = ""
    after: Mapping[str, int] = {}
    totals: Mapping[Span, tuple[Row, ...]] = {}


def read_known(ledger: Ledger, host: str) -> Known:
    """Return how far a node was heard."""
    found = ledger.connection.execute(NODE, (host,)).fetchone()
    if not found:
        return Known()
    after = dict(ledger.connection.execute(HEARD, (host,)).fetchall())
    totals = decode(found[1], tuple[Totals, ...])
    return Known(found[0], after, {one.span: one.rows for one in totals})


def hear(ledger: Ledger, host: str, asked: Inquiry, said: Account) -> int:
    """Enter the answer to what was asked; return how many changes there were.

    An answer is passed over if another one was heard since it was asked for.
    """
    with transaction(ledger.connection):
        known = read_known(ledger, host)
        if (known.ledger, _select(known, asked)) != (asked.ledger, asked.after):
            return 0
        is_same = said.ledger == known.ledger
        if not is_same:
            ledger.connection.execute(FORGET, (host,))
        changes = {name: found for name, found in said.changes.items() if name in asked.after}
        for project, found in changes.items():
            _enter(ledger, host, project, found)
            number = found[-1].number if found else known.after.get(project, 0) if is_same else 0
            ledger.connection.execute(KEEP_HEARD, (host, project, number))
        totals = msgspec.json.encode(said.totals).decode()
        ledger.connection.execute(KEEP_NODE, (host, said.ledger, totals))
        crash_point("node:heard")
    return sum(map(len, changes.values()))


def _select(known: Known, asked: Inquiry) -> dict[str, int]:
    return {project: known.after.get(project, 0) for project in asked.after}


def _enter(ledger: Ledger, host: str, project: str, changes: Iterable[Change]) -> None:
    now = time.time()
    for change in changes:
        if change.request is None:
            ledger.connection.execute(REMOVE, (change.key, host, project))
            continue
        row = _make_row(change.key, host, project, change.request, now)
        ledger.connection.execute(ENTER, row)


def _make_row(
    key: str, host: str, project: str, request: Request, now: float
) -> tuple[object, ...]:
    """The columns of `ENTER`. A day is one of this machine, and none to come."""
    tidied = {
        name: tidy_name(value)
        for name in Request.__struct_fields__
        if isinstance(value := getattr(request, name), str)
    }
    values = {name: getattr(request, name) for name in Request.__struct_fields__} | tidied
    day = name_day(min(request.at, now))
    named = (values[name] for name in (*COPIED, *PRICED))
    return (key, host, project, request.at, day, *named)
