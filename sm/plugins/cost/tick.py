"""Listener of dev-poll for what no pass does: sessions that are gone, prices that wait."""

from __future__ import annotations

from sm.issues.ticks import Listener, Tick
from sm.plugins.cost.ledger.progress import have_prices_waited, list_notes_of_gone
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.store.paths import Root


def _wants(tick: Tick) -> bool:
    """Whether a session is over and was not seen to, or prices were put off for long enough."""
    root = Machine(tick.config).root
    return have_prices_waited(root) or next(list_notes_of_gone(root), None) is not None


def _see_to(root: Root, tick: Tick) -> None:
    from sm.plugins.cost.bill import close_gone, price_late

    if have_prices_waited(root):
        price_late(root, tick.config)
    projects = {one.name: Project(tick.config, one) for one in tick.config.projects}
    close_gone(root, tick.config, projects)


LISTENER = Listener(_see_to, _wants)
