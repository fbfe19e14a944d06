"""Raises of limits: those on record in the ledger, for good, and those that a person may make."""

from __future__ import annotations

import time
from functools import partial

from msgspec import Struct, structs

from sm.base.act import LOOK_AT_STATUS
from sm.base.errors import AnsweredError, UsageError
from sm.config import duration
from sm.issues.meters import SetLimit
from sm.issues.runners import Elsewhere
from sm.plugins.cost.budget.balances import Balances, measure, open_balances
from sm.plugins.cost.budget.limits import list_for_placed, list_limits, list_shared
from sm.plugins.cost.budget.rules import BudgetLimit, LimitUse, add_up, describe
from sm.plugins.cost.ledger import progress
from sm.plugins.cost.ledger.amount import AmountUnit, find_round, parse, show, spell
from sm.plugins.cost.ledger.entries import open_ledger
from sm.plugins.cost.ledger.scopes import Scope
from sm.plugins.cost.settings import find_ledger
from sm.sessions import registry
from sm.sessions.caller import Caller
from sm.sessions.machine import Machine
from sm.sessions.pause import name_host
from sm.sessions.project import Project, find_person
from sm.sessions.session import Session
from sm.store import journal
from sm.store.events import FromPlugin
from sm.store.files import ensure_private_dir
from sm.store.sqlite import Connection, transaction

ENTER = "INSERT INTO raises (at, scope, name, unit, amount, by) VALUES (?, ?, ?, ?, ?, ?)"
MADE = "SELECT at, amount, by FROM raises WHERE scope = ? AND name = ? AND unit = ? ORDER BY id"
EVENT = "budget-changed"


class Raise(Struct, frozen=True):
    """A raise of a limit by a person, in its unit; below 0 it was taken back."""

    at: float
    amount: int
    by: str


def name_person(caller: Caller) -> str:
    """Name the person, as others read it.

    Raises:
        UsageError: an agent has called.

    """
    if caller.session:
        raise UsageError(
            f"this is the session '{caller.session.label}': what agents may use is decided by a "
            "person, in a shell of his own"
        )
    return f"{find_person()}@{name_host()}"


def read_amount(text: str, unit: AmountUnit) -> int:
    """An amount as it is typed: a number alone is of the limit's unit.

    Raises:
        UsageError: it is none, or of another unit.

    """
    try:
        amount = parse(text, unit)
    except ValueError as error:
        example = "5" if unit is AmountUnit.USD else "2M"
        raise UsageError(
            f"'{text}' is no amount: write {example}, as a shell takes $5 for a variable"
        ) from error
    if amount.unit is not unit:
        raise UsageError(f"that limit is in {unit}, and '{text}' is not")
    return amount.count


def change(
    machine: Machine, limit: BudgetLimit, amount: int, by: str, *, known: int | None = None
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
        book = Balances(ledger.connection)
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


def _list_sessions(machine: Machine, limit: BudgetLimit) -> list[str]:
    """The sessions that the limit is for."""
    known = registry.list_all(machine.root, lambda _: None)
    match limit.scope:
        case Scope.ISSUE:
            return [one.name for one in known if one.issue and one.address == limit.name]
        case Scope.SESSION:
            return [one.name for one in known if one.name == limit.name.rpartition("@")[0]]
    return [one.name for one in known]


def list_raises(connection: Connection, limit: BudgetLimit) -> list[Raise]:
    """List what was decided about a limit, the oldest first."""
    rows = connection.execute(MADE, (limit.scope, limit.name, limit.amount.unit))
    return [Raise(*row) for row in rows]


def tell_last(connection: Connection | None, limit: BudgetLimit, now: float) -> str:
    """Say who has changed a limit last, by how much and how long ago; '' for nobody."""
    if connection is None or not (made := list_raises(connection, limit)):
        return ""
    last, unit = made[-1], limit.amount.unit
    verb = "raised" if last.amount > 0 else "lowered"
    ago = duration.show(max(0, round(now - last.at)))
    return f"{last.by} has {verb} it by {show(unit, abs(last.amount))} {ago} ago"


def list_set(asked: Session | Project | Elsewhere) -> list[SetLimit]:
    """The limits of a session, or those that the sessions of a project share.

    Raises:
        StateError, TemporaryError: the ledger cannot be read.

    """
    machine = (asked.project if isinstance(asked, Elsewhere) else asked).machine
    now = time.time()
    if isinstance(asked, Elsewhere):
        limits = list_for_placed(asked.project, asked.placement, now)
    elif isinstance(asked, Project):
        limits = list_shared(asked.config, asked.settings, now)
    else:
        # One that another installation has told us is raised there.
        limits = [limit for limit in list_limits(asked, now) if not limit.is_told]
    if not limits:
        return []
    with open_balances(find_ledger(machine.settings)) as book:
        measured = list(measure(book, limits, progress.count_followed(machine.root)))
        return [
            _offer(machine, limit, used, tell_last(book.connection, limit, now))
            for limit, used in measured
        ]


def _offer(machine: Machine, limit: BudgetLimit, used: LimitUse, last: str) -> SetLimit:
    unit = limit.amount.unit
    return SetLimit(
        key=f"{limit.scope}:{limit.name}:{unit}",
        act=limit.act or LOOK_AT_STATUS,
        shown=describe(limit, used),
        proposal=spell(unit, propose(limit, used)),
        raised=show(unit, limit.raised) if limit.raised else "",
        raise_by=partial(_change, machine, limit, 1),
        lower_by=partial(_change, machine, limit, -1),
        last=last,
    )


def propose(limit: BudgetLimit, used: LimitUse) -> int:
    """Propose a raise so that work can go on: half of the first limit, and all over it."""
    return find_round(limit.amount.count // 2 + max(0, used.at_most - limit.height))


def _change(machine: Machine, limit: BudgetLimit, sign: int, text: str) -> str:
    amount = read_amount(text, limit.amount.unit)
    by = name_person(Caller())
    return change(machine, limit, sign * amount, by, known=limit.raised)
