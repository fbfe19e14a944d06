"""Finds the threads about the issue of a session."""

from __future__ import annotations

from pathlib import Path

from sm.base.errors import SmError
from sm.plugins.chat.bridge import bindings, place
from sm.plugins.chat.bridge.handoffs import open_bridge
from sm.sessions.session import Session
from sm.store import events, journal


def find_about(path: Path, session: Session) -> tuple[str, ...]:
    """Return the ids of the threads about the session's issue, oldest first.

    `path` is the database.
    """
    try:
        if not place.is_there(path):
            return ()
        with open_bridge(path) as handoffs:
            found = bindings.list_about_issue(handoffs, session.project_name, session.issue)
    except SmError as error:
        problem = events.Problem(session=session.name, text=error.message)
        journal.record_once(session.root.journal, problem)
        return ()
    return tuple(binding.handoff_id for binding in found)
