"""What holds up work: a notice named `closed` on the board, as long as it hangs there."""

from __future__ import annotations

from sm_noticeboard.settings import Noticeboard

from sm.config.shapes import read_section
from sm.issues.meters import Meter
from sm.issues.rules.allowance import Allowance, Stage
from sm.sessions.project import Project
from sm.sessions.session import IssueSession, Session


def read_session(session: Session) -> Allowance | None:
    """Return what the notice says, as something that holds the session; None without one."""
    holder = session.project if isinstance(session, IssueSession) else session.machine
    return _read(read_section(holder.settings, Noticeboard))


def read_project(project: Project) -> Allowance | None:
    """Return the same for an issue that is to be begun."""
    return _read(read_section(project.settings, Noticeboard))


def _read(settings: Noticeboard) -> Allowance | None:
    notice = settings.board / "closed" if settings.board else None
    if notice is None or not notice.exists():
        return None
    return Allowance(Stage.HELD, "closed", notice.read_text("utf-8").strip())


METER = Meter(read=read_session, admit=read_project)
