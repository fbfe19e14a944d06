"""Opens the services of a session. It is imported wherever a session is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sm.sessions.session import IssueSession, Session

if TYPE_CHECKING:
    from sm.plugins.notify.channel import Services


def open_notify(session: Session) -> Services | None:
    """Return the services that a session has; None, at no cost, if nobody has configured any."""
    holder = session.project if isinstance(session, IssueSession) else session.machine
    if "notify" not in holder.settings.__struct_fields__:
        return None
    from sm.plugins.notify.channel import open_services

    return open_services(session)
