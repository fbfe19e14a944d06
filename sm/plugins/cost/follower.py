"""Follower of a session: once its agent's records have grown, they are read on.

Each pass loads this module and asks it, so it knows nothing of databases and prices.
"""

from __future__ import annotations

import os
import time

from sm.plugins.cost.budget.meter import has_budget
from sm.plugins.cost.ledger.progress import has_grown, list_notes_of_gone, note_reading
from sm.sessions.followers import Follower
from sm.sessions.project import Project
from sm.sessions.session import IssueSession, Session

PRELOADED = ("sm.plugins.cost.ledger.records.claude", "sm.plugins.cost.ledger.records.codex")
"""Readers that each pass of a session with growing records uses."""


def follow(session: Session) -> None:
    """Enter what the session's agent has used, settle it, and close sessions that are gone."""
    from sm.plugins.cost.budget.settlement import settle
    from sm.plugins.cost.ledger.intake import enter_session

    enter_session(session, settle)
    if next(list_notes_of_gone(session.root), None):
        from sm.plugins.cost.bill import close_gone

        projects = {}
        if isinstance(session, IssueSession):
            config = session.project.config
            projects = {one.name: Project(config, one) for one in config.projects}
        close_gone(session.root, session.machine.settings, projects)


def _follow(session: Session) -> None:
    # The process is one of its own, which alone loads what this takes.
    if not has_budget(session):
        os.nice(10)  # agents and passes come first
    follow(session)


def _wants(session: Session) -> bool:
    grown = has_grown(session)
    if grown and has_budget(session):
        note_reading(session, time.time())
    return grown


FOLLOWER = Follower(_follow, _wants)
