"""What holds up work: a notice such as `held` or `over` on the board, as long as it hangs there."""

from __future__ import annotations

from sm_noticeboard.settings import Noticeboard

from sm.base.act import run
from sm.config.shapes import read_section
from sm.issues.meters import Meter
from sm.issues.rules.allowance import Allowance, LimitStage
from sm.sessions.project import Project
from sm.sessions.session import IssueSession, Session

STRICTEST_FIRST = tuple(reversed(LimitStage))


def read_session(session: Session) -> Allowance | None:
    """Return what the strictest notice says of a session; None without a board."""
    holder = session.project if isinstance(session, IssueSession) else session.machine
    return _read(read_section(holder.settings, Noticeboard))


def read_project(project: Project) -> Allowance | None:
    """Return what keeps an issue from being begun: a notice that holds sessions, too."""
    found = _read(read_section(project.settings, Noticeboard))
    return found if found and found.holds else None


def _read(settings: Noticeboard) -> Allowance | None:
    if settings.board is None:
        return None
    stage = next(
        (one for one in STRICTEST_FIRST if (settings.board / one).exists()), LimitStage.FREE
    )
    shown = "" if stage is LimitStage.FREE else (settings.board / stage).read_text("utf-8").strip()
    return Allowance(stage, "board", shown, act=run(f"rm {settings.board / stage}"))


METER = Meter(read=read_session, admit=read_project)
