"""The limits that a person may change where sessions are shown, each with a proposal."""

from __future__ import annotations

import time
from functools import partial

from sm.base.act import LOOK_AT_STATUS
from sm.issues.meters import SetLimit
from sm.issues.runners import Elsewhere
from sm.plugins.cost.budget import raises
from sm.plugins.cost.budget.balances import open_book
from sm.plugins.cost.budget.limits import (
    list_for_placed,
    list_limits,
    list_shared,
)
from sm.plugins.cost.budget.rules import Limit, Used, describe
from sm.plugins.cost.budget.verdict import measure
from sm.plugins.cost.ledger import progress
from sm.plugins.cost.ledger.amount import find_round, show, spell
from sm.plugins.cost.settings import find_ledger
from sm.sessions.caller import Caller
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.sessions.session import Session


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
    with open_book(find_ledger(machine.settings)) as book:
        measured = list(measure(book, limits, progress.count_followed(machine.root)))
        return [
            _offer(machine, limit, used, raises.tell_last(book.connection, limit, now))
            for limit, used in measured
        ]


def _offer(machine: Machine, limit: Limit, used: Used, last: str) -> SetLimit:
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


def propose(limit: Limit, used: Used) -> int:
    """So much more that work can go on: half of what was set at first, and all that is over it."""
    return find_round(limit.amount.count // 2 + max(0, used.at_most - limit.height))


def _change(machine: Machine, limit: Limit, sign: int, text: str) -> str:
    amount = raises.read_amount(text, limit.amount.unit)
    by = raises.name_person(Caller())
    return raises.change(machine, limit, sign * amount, by, known=limit.raised)
