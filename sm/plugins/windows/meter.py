"""Meter of what the usage windows leave to a session, or to one more issue of a project.

Most people set no limit, so this loads nothing before one is set.
"""

from __future__ import annotations

from sm.issues.meters import Meter
from sm.issues.rules.allowance import Allowance
from sm.plugins.windows.settings import read_hold
from sm.sessions.project import Project
from sm.sessions.session import IssueSession, Session


def read_session(session: Session) -> Allowance | None:
    """Return what holds the session, or that it may soon; None for nothing."""
    holder = session.project if isinstance(session, IssueSession) else session.machine
    hold = read_hold(holder.settings)
    if hold is None:
        return None
    from sm.plugins.windows.hold import judge_session

    return judge_session(session, hold)


def read_project(project: Project) -> Allowance | None:
    """Return what holds an issue that is to be begun; None for nothing."""
    hold = read_hold(project.settings)
    if hold is None:
        return None
    from sm.plugins.windows.hold import judge_project

    return judge_project(project, hold)


METER = Meter(read=read_session, admit=read_project)
