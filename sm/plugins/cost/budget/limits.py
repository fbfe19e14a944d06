"""Limits of a session, of an issue, of a project and of a day."""

from __future__ import annotations

import time

from sm.base.act import Act, ActKind
from sm.base.issue_id import IssueId
from sm.config.schema import Config, ProjectSettings
from sm.config.shapes import read_section
from sm.issues.runners import Placement
from sm.plugins.cost.budget.remote_limits import list_told
from sm.plugins.cost.budget.rules import BudgetLimit
from sm.plugins.cost.budget.settings import Budget
from sm.plugins.cost.ledger.progress import find_beginning
from sm.plugins.cost.ledger.scopes import Scope, name_issue, name_project_day, name_session
from sm.sessions.project import Project
from sm.sessions.session import IssueSession, Session

DAY, DAY_S = "%Y-%m-%d", 86400.0
DAYS_AHEAD = 2
"""Requests of so many days to come count for today: the clock was set back since."""


def list_limits(session: Session, now: float) -> list[BudgetLimit]:
    """List the limits that a session is under."""
    own, machine = read_own(session), read_section(session.machine.settings, Budget)
    limits = [find_session_limit(session, own)]
    if isinstance(session, IssueSession):
        project = session.project
        limits.append(find_issue_limit(own, project.name, session.issue))
        shared = list_shared(project.config, project.settings, now)
        return _known(*limits) + shared + list_told(session, now)
    return _known(*limits, find_machine_limit(machine, now)) + list_told(session, now)


def list_for_placed(project: Project, placement: Placement, now: float) -> list[BudgetLimit]:
    """List our limits that a session elsewhere is under."""
    own = read_section(project.settings, Budget)
    limits = find_placed_limit(own, placement), find_issue_limit(own, project.name, placement.issue)
    return _known(*limits) + list_shared(project.config, project.settings, now)


def list_shared(config: Config, project: ProjectSettings, now: float) -> list[BudgetLimit]:
    """List the limits that the sessions of a project share: a new issue needs room in each."""
    return _known(
        find_day_limit(config, project, now),
        find_project_limit(project),
        find_machine_limit(read_section(config, Budget), now),
    )


def counts_unknown(config: Config, project: ProjectSettings, now: float) -> bool:
    """Whether a new issue of a project is under a limit for which counts what nobody knows."""
    own = read_section(project, Budget)
    is_limited = own.issue is not None or own.session is not None
    return (is_limited and not own.allows_unknown) or any(
        not limit.allows_unknown for limit in list_shared(config, project, now)
    )


def read_own(session: Session) -> Budget:
    """Read what is set for a session: in its project, or for the machine if it has none."""
    if isinstance(session, IssueSession):
        return read_section(session.project.settings, Budget)
    return read_section(session.machine.settings, Budget)


def _raise(limit: str) -> Act:
    return Act(ActKind.RAISE, limit=limit)


def _known(*limits: BudgetLimit | None) -> list[BudgetLimit]:
    return [limit for limit in limits if limit]


def find_issue_limit(own: Budget, project: str, issue: IssueId) -> BudgetLimit | None:
    """Return the limit of an issue."""
    if own.issue is None:
        return None
    return BudgetLimit(
        *(Scope.ISSUE, name_issue(project, issue), own.issue.amount),
        words="for this issue",
        act=_raise(f"{project} {issue}"),
        allows_unknown=own.allows_unknown,
    )


def find_session_limit(session: Session, own: Budget) -> BudgetLimit | None:
    """Return the limit of a session."""
    if own.session is None:
        return None
    return BudgetLimit(
        *(Scope.SESSION, name_session(session.name, find_beginning(session))),
        own.session.amount,
        words="for this session",
        act=_raise(f"{session.address.replace('#', ' ')} --session"),
        allows_unknown=own.allows_unknown,
    )


def find_placed_limit(own: Budget, placement: Placement) -> BudgetLimit | None:
    """Return the limit of a session elsewhere: only its node knows what is used of it."""
    if own.session is None:
        return None
    one = placement
    return BudgetLimit(
        *(Scope.SESSION, f"{one.session}@{one.attempt}", own.session.amount),
        words="for this session",
        act=_raise(f"{one.project} {one.issue} --session"),
        allows_unknown=own.allows_unknown,
        is_placed=True,
    )


def find_day_limit(config: Config, project: ProjectSettings, now: float) -> BudgetLimit | None:
    """Return the limit of a project's day; none if it is the machine's, for all projects."""
    own, name = read_section(project, Budget), project.name
    if own.day is None or own.day == read_section(config, Budget).day:
        return None
    first, last = _name_days(now)
    return BudgetLimit(
        *(Scope.PROJECT_DAY, name_project_day(name, first), own.day.amount),
        last_name=name_project_day(name, last),
        words=f"for {name} today",
        act=_raise(f"{name} --day"),
        ends_at=find_midnight(now),
        allows_unknown=own.allows_unknown,
    )


def find_project_limit(project: ProjectSettings) -> BudgetLimit | None:
    """Return the limit of all that a project uses, for good."""
    own, name = read_section(project, Budget), project.name
    if own.project is None:
        return None
    return BudgetLimit(
        *(Scope.PROJECT, name, own.project.amount),
        words=f"for {name}",
        act=_raise(f"{name} --project"),
        allows_unknown=own.allows_unknown,
    )


def find_machine_limit(machine: Budget, now: float) -> BudgetLimit | None:
    """Return the limit of a day over all projects."""
    if machine.day is None:
        return None
    first, last = _name_days(now)
    return BudgetLimit(
        *(Scope.DAY, first, machine.day.amount),
        last_name=last,
        words="for today",
        act=_raise("--day"),
        ends_at=find_midnight(now),
        allows_unknown=machine.allows_unknown,
    )


def _name_days(now: float) -> tuple[str, str]:
    """Today, and the last day to come that counts for today."""
    ahead = time.localtime(now + DAYS_AHEAD * DAY_S)
    return time.strftime(DAY, time.localtime(now)), time.strftime(DAY, ahead)


def find_midnight(now: float) -> float:
    """Find when the next day begins, where this machine is."""
    today = time.localtime(now)
    tomorrow = (today.tm_year, today.tm_mon, today.tm_mday + 1, 0, 0, 0, 0, 0, -1)
    return time.mktime(tomorrow)
