"""Listener of dev-poll that asks other machines what was used there, and tells what is left.

Under a budget it goes on until about the next tick, so that sessions elsewhere are held in seconds.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeAlias

from sm.base.clock import Deadline
from sm.config.schema import Config
from sm.issues.rules.allowance import LimitStage
from sm.issues.ticks import Listener, Tick
from sm.plugins.cost.ledger import nodes
from sm.sessions.machine import Machine
from sm.store.paths import Root

if TYPE_CHECKING:
    from sm.plugins.cost.budget.rules import BudgetLimit, LimitUse

Measured: TypeAlias = "list[tuple[BudgetLimit, LimitUse]]"
"""Limits, each with what is used of it."""

EVERY_S, SELDOM_S = 4.0, 16.0
"""The second while at least half of each limit is left: each time is a process on each machine."""
WATCH_S = 50.0
"""A listener may take a minute, and the next tick is due by then."""


def _wants(tick: Tick) -> bool:
    root = Machine(tick.config).root
    return nodes.may_be_any(root, [one.name for one in tick.config.projects])


def _hear(root: Root, tick: Tick) -> None:
    from sm.plugins.cost.sync.home import ask_all

    deadline = Deadline(WATCH_S)
    while True:
        heard = ask_all(tick.config, root)
        measured = measure_shared(tick.config, root)
        if heard:
            follow_up(root, measured)
        pause_s = find_pause_s(measured)
        if deadline.left_s < pause_s or not _tells_limits(tick.config, root):
            return
        time.sleep(pause_s)


def _tells_limits(config: Config, root: Root) -> bool:
    from sm.plugins.cost.sync.home import list_meant

    sessions = nodes.list_sessions(config, root).values()
    return any(list_meant(config, each) for each in sessions)


def find_pause_s(measured: Measured) -> float:
    """Return after how many seconds machines are told again what is left of shared limits."""
    return SELDOM_S if all(2 * used.at_most <= one.height for one, used in measured) else EVERY_S


def follow_up(root: Root, measured: Measured) -> None:
    """Wake the sessions that share a limit that is used up; note that prices wait for a tick."""
    from sm.plugins.cost.budget.rules import weigh
    from sm.plugins.cost.ledger.progress import note_unpriced
    from sm.sessions import registry

    if not measured:
        note_unpriced(root)
    elif any(
        weigh(limit, used).stage in (LimitStage.OVER, LimitStage.SPENT) for limit, used in measured
    ):
        for name in registry.list_session_names(root):
            registry.poke(root.session(name))


def measure_shared(config: Config, root: Root) -> Measured:
    """Return the limits that sessions share, and what is used of each; look up missing prices."""
    from sm.plugins.cost.budget.balances import Balances, measure
    from sm.plugins.cost.budget.limits import list_shared
    from sm.plugins.cost.ledger import progress
    from sm.plugins.cost.ledger.entries import open_ledger
    from sm.plugins.cost.ledger.prices import price_pending
    from sm.plugins.cost.settings import find_ledger

    now = time.time()
    limits = [one for project in config.projects for one in list_shared(config, project, now)]
    if not limits:
        return []
    with open_ledger(find_ledger(config)) as ledger:
        price_pending(ledger)
        return list(measure(Balances(ledger.connection), limits, progress.count_followed(root)))


LISTENER = Listener(_hear, _wants)
