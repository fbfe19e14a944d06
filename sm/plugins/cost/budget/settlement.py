"""Settles entries of a session: looks up their prices, and wakes sessions that are near a limit.

This is done by the process that enters them, so no pass waits for it.
"""

from __future__ import annotations

import contextlib
import time

from sm.base.errors import SmError
from sm.issues.rules.allowance import Allowance, LimitStage, find_strictest
from sm.plugins.cost.budget.balances import Balances, measure
from sm.plugins.cost.budget.limits import list_limits
from sm.plugins.cost.budget.rules import BudgetLimit, LimitUse, needs_prices, weigh
from sm.plugins.cost.ledger import progress
from sm.plugins.cost.ledger.entries import CostLedger
from sm.plugins.cost.ledger.progress import (
    are_prices_due,
    find_priced_at,
    note_pricing,
    note_unpriced,
)
from sm.sessions import registry
from sm.sessions.session import Session
from sm.store.paths import Root

Measured = list[tuple[BudgetLimit, LimitUse]]


def settle(ledger: CostLedger, session: Session) -> bool:
    """Look up prices if a limit needs them, or it is time; wake the session if a limit is near.

    Returns whether a limit still waits for prices: they are looked up once for many requests.
    """
    limits = []
    with contextlib.suppress(SmError):  # a pass tells what is wrong with the configuration
        limits = list_limits(session, time.time())
    if not limits:
        if ledger.lacks_many_prices() or are_prices_due(session.root):
            note_pricing(session.root)
            _look_up_prices(ledger)
        else:
            note_unpriced(session.root)
        return False
    measured = _measure(ledger, session, limits)
    if _needs_prices(measured, session.root) or ledger.lacks_many_prices():
        note_pricing(session.root)
        _look_up_prices(ledger)
        measured = _measure(ledger, session, limits)
    _wake(session, measured)
    return any(used.pending for _, used in measured)


def _measure(ledger: CostLedger, session: Session, limits: list[BudgetLimit]) -> Measured:
    return list(measure(Balances(ledger.connection), limits, progress.count_followed(session.root)))


def _weigh(measured: Measured) -> Allowance | None:
    return find_strictest(weigh(limit, used) for limit, used in measured)


def _needs_prices(measured: Measured, root: Root) -> bool:
    weighed = _weigh(measured)
    assert weighed
    since_s = time.time() - find_priced_at(root)
    return any(needs_prices(weighed.stage, used, since_s) for _, used in measured)


def _look_up_prices(ledger: CostLedger) -> None:
    from sm.plugins.cost.ledger.prices import price_pending

    price_pending(ledger)


def _wake(session: Session, measured: Measured) -> None:
    """Have the session looked at, and all others that share a limit which is used up."""
    weighed = _weigh(measured)
    if weighed is None or weighed.stage is LimitStage.FREE:
        return
    registry.poke(session.dir)
    shared = (weigh(limit, used).stage for limit, used in measured if limit.is_shared)
    if any(stage in (LimitStage.OVER, LimitStage.SPENT) for stage in shared):
        for name in registry.list_session_names(session.root):
            registry.poke(session.root.session(name))
