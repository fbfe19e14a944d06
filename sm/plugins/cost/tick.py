"""Has dev-poll see to sessions that are over, as they have no passes any more."""

from __future__ import annotations

from sm.issues.ticks import Listener, Tick
from sm.plugins.cost.growth import list_notes_of_gone
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.store.paths import Root


def _wants(tick: Tick) -> bool:
    """Whether there is a session that is over, and was not seen to."""
    root = Machine(tick.config).root
    return next(list_notes_of_gone(root), None) is not None


def _close(root: Root, tick: Tick) -> None:
    from sm.plugins.cost.closing import close_gone

    projects = {one.name: Project(tick.config, one) for one in tick.config.projects}
    close_gone(root, tick.config, projects)


LISTENER = Listener(_close, _wants)
