"""Finds the session that is asked before people: `escalation.first`, as on this machine."""

from __future__ import annotations

from sm.sessions import agent, registry
from sm.sessions.session import AnySession, IssueSession


def find_first(session: IssueSession) -> AnySession | None:
    """Return the session that is asked what `session` asks; None: people are asked at once.

    Never the asking session itself, and its agent runs.
    """
    address = session.project.settings.escalation.first
    if not address:
        return None
    for one in registry.list_all(session.root, report=lambda _: None):
        is_meant = address in (one.name, one.address) and one.name != session.name
        if is_meant and one.is_living and agent.is_alive(one.dir):
            return one
    return None
