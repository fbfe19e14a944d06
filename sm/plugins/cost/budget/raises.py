"""What people have decided about limits: on record in the ledger, for good."""

from __future__ import annotations

import time

from msgspec import Struct, structs

from sm.base.errors import AnsweredError, UsageError
from sm.config import duration
from sm.plugins.cost.budget.balances import Book
from sm.plugins.cost.budget.rules import Limit, add_up, describe
from sm.plugins.cost.ledger.amount import Unit, parse, show
from sm.plugins.cost.ledger.entries import open_ledger
from sm.plugins.cost.ledger.scopes import Scope
from sm.plugins.cost.settings import find_ledger
from sm.sessions import registry
from sm.sessions.caller import Caller
from sm.sessions.machine import Machine
from sm.sessions.pause import name_host
from sm.sessions.project import find_person
from sm.store import journal
from sm.store.events import FromPlugin
from sm.store.files import ensure_private_dir
from sm.store.sqlite import Connection, transaction

ENTER = "INSERT INTO raises (at, scope, name, unit, amount, by) VALUES (?, ?, ?, ?, ?, ?)"
MADE = "SELECT at, amount, by FROM raises WHERE scope = ? AND name = ? AND unit = ? ORDER BY id"
EVENT = "budget-changed"


class Raise(Struct, frozen=True):
    """That somebody has raised a limit, by so much in its unit; below 0 it was taken back."""

    at: float
    amount: int
    by: str


def name_person(caller: Caller) -> str:
    """Who it is, as others read it.

    Raises:
        UsageError: an agent has called.

    """
    if caller.session:
        raise UsageError(
            f"this is the session '{caller.session.label}': what agents may use is decided by a "
            "person, in a shell of his own"
        )
    return f"{find_person()}@{name_host()}"


def read_amount(text: str, unit: Unit) -> int:
    """An amount as it is typed: a number alone is of the limit's unit.

    Raises:
        UsageError: it is none, or of another unit.

    """
    try:
        amount = parse(text, unit)
    except ValueError as error:
        example = "5" if unit is Unit.USD else "2M"
        raise UsageError(
            f"'{text}' is no amount: write {example}, as a shell takes $5 for a variable"
        ) from error
    if amount.unit is not unit:
        raise UsageError(f"that limit is in {unit}, and '{text}' is not")
    return amount.count


def change(
    machine: Machine, limit: Limit, amount: int, by: str, *, known: int | None = None
) -> str:
    """Raise a limit, or lower it; have looked what waits for it. Returns what holds now.

    `known` is what it was raised by as the person saw it.

    Raises:
        AnsweredError: somebody else was first.
        UsageError: there is less to take back.
        StateError, TemporaryError: the ledger cannot be written.

    """
    unit = limit.amount.unit
    with open_ledger(find_ledger(machine.settings)) as ledger, transaction(ledger.connection):
        book = Book(ledger.connection)
        before = book.list_raised([limit])[0]
        if known is not None and before != known:
            raise AnsweredError(f"{tell_last(ledger.connection, limit, time.time())}: look again")
        raised = before + amount
        if raised < 0:
            raise UsageError(
                f"that limit was raised by {show(unit, raised - amount)}: to lower it further, "
                "change the configuration"
            )
        row = (time.time(), limit.scope, limit.name, unit, amount, by)
        ledger.connection.execute(ENTER, row)
        now = structs.replace(limit, raised=raised)
        says = describe(now, add_up(book.list_rows([now])[0], now))
    ensure_private_dir(machine.root.private)
    verb = "raised" if amount > 0 else "lowered"
    text = f"{verb} by {show(unit, abs(amount))} by {by}: {says}"
    sessions = list(_list_sessions(machine, limit))
    named = sessions[0] if len(sessions) == 1 and not limit.is_shared else ""
    journal.record(machine.root.journal, FromPlugin(session=named, event=EVENT, text=text))
    for name in sessions:
        registry.poke(machine.root.session(name))
    return text


def _list_sessions(machine: Machine, limit: Limit) -> list[str]:
    """The sessions that the limit is for."""
    known = registry.list_all(machine.root, lambda _: None)
    match limit.scope:
        case Scope.ISSUE:
            return [one.name for one in known if one.issue and one.address == limit.name]
        case Scope.SESSION:
            return [one.name for one in known if one.name == limit.name.rpartition("@")[0]]
    return [one.name for one in known]


def list_raises(connection: Connection, limit: Limit) -> list[Raise]:
    """What was decided about a limit, the oldest first."""
    rows = connection.execute(MADE, (limit.scope, limit.name, limit.amount.unit))
    return [Raise(*row) for row in rows]


def tell_last(connection: Connection | None, limit: Limit, now: float) -> str:
    """Say who has changed a limit last, by how much and how long ago; '' for nobody."""
    if connection is None or not (made := list_raises(connection, limit)):
        return ""
    last, unit = made[-1], limit.amount.unit
    verb = "raised" if last.amount > 0 else "lowered"
    ago = duration.show(max(0, round(now - last.at)))
    return f"{last.by} has {verb} it by {show(unit, abs(last.amount))} {ago} ago"
