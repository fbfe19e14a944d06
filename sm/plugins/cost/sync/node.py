"""On a node: answers what another installation asks, and keeps what its limits leave to us."""

from __future__ import annotations

import time
from collections.abc import Iterable

from sm.issues.rules.allowance import Stage
from sm.plugins.cost.budget import remote_limits
from sm.plugins.cost.budget.balances import Book
from sm.plugins.cost.budget.rules import weigh
from sm.plugins.cost.budget.verdict import measure
from sm.plugins.cost.ledger import progress
from sm.plugins.cost.ledger.amount import Unit
from sm.plugins.cost.ledger.entries import Ledger, open_ledger
from sm.plugins.cost.ledger.intake import LATELY_S, read_all
from sm.plugins.cost.ledger.prices import price_pending
from sm.plugins.cost.settings import find_ledger
from sm.plugins.cost.sync.telling import account
from sm.plugins.cost.sync.wire import Account, Inquiry, ToldLimit
from sm.sessions import registry
from sm.sessions.machine import Machine


def answer(machine: Machine, asked: Inquiry) -> Account:
    """Return what has changed, up to the last line that agents have written.

    Under a limit in money it is told with its prices: both count the same then.

    Raises:
        StateError, TemporaryError: as `open_ledger`.

    """
    with open_ledger(find_ledger(machine.settings)) as ledger:
        read_all(ledger, ledger.list_lately_read(time.time() - LATELY_S))
        if ledger.lacks_a_price() and any(one.unit is Unit.USD for one in asked.limits or ()):
            price_pending(ledger)
        if asked.limits is not None:
            _take_limits(ledger, machine, asked.home, asked.limits)
        return account(ledger, asked)


def _take_limits(
    ledger: Ledger, machine: Machine, home: str, limits: tuple[ToldLimit, ...]
) -> None:
    """Keep them, and have the sessions looked at if that changes what they may do."""
    book, before = Book(ledger.connection), list(remote_limits.list_all(machine.settings))
    if not remote_limits.keep(machine.settings, home, limits):
        return
    after = list(remote_limits.list_all(machine.settings))
    if _weigh(machine, book, before) != _weigh(machine, book, after):
        for name in registry.list_session_names(machine.root):
            registry.poke(machine.root.session(name))


def _weigh(machine: Machine, book: Book, told: Iterable[ToldLimit]) -> dict[str, Stage]:
    """How far each limit is used up, by its key, in which its height is."""
    now = time.time()
    limits = [remote_limits.make_limit(one, now) for one in told]
    measured = measure(book, limits, progress.count_followed(machine.root))
    weighed = [weigh(limit, used) for limit, used in measured]
    return {one.matter: one.stage for one in weighed}
