"""Which limits there are: those of a session, and those that a new issue needs room in."""

from __future__ import annotations

import time
from collections.abc import Iterator

from sm.config.schema import Config, ProjectSettings
from sm.config.shapes import read_section
from sm.plugins.cost.budget.decide import Limit
from sm.plugins.cost.budget.settings import Budget
from sm.plugins.cost.budget.tables import Scope, name_issue, name_project_day, name_session
from sm.plugins.cost.growth import find_beginning
from sm.sessions.session import IssueSession, Session

RAISE = "sm budget raise"
DAY, DAY_S = "%Y-%m-%d", 86400.0
DAYS_AHEAD = 2
"""Requests of so many days to come count for today: the clock was set back since."""


def list_limits(session: Session, now: float) -> list[Limit]:
    """Those that a session is under."""
    if not isinstance(session, IssueSession):
        machine = read_section(session.machine.settings, Budget)
        return [*_list_for_session(session, machine), *list_for_machine(machine, now)]
    project = session.project
    own = read_section(project.settings, Budget)
    machine = read_section(project.config, Budget)
    return [
        *_list_for_issue(session, own),
        *_list_for_session(session, own),
        *list_for_project(project.settings, own, machine, now),
        *list_for_machine(machine, now),
    ]


def list_shared(config: Config, project: ProjectSettings, now: float) -> list[Limit]:
    """Those that a new issue of the project needs room in."""
    own, machine = read_section(project, Budget), read_section(config, Budget)
    return [*list_for_project(project, own, machine, now), *list_for_machine(machine, now)]


def _list_for_issue(session: IssueSession, own: Budget) -> Iterator[Limit]:
    if own.issue:
        yield make_issue_limit(own, session.project_name, session.issue)


def make_issue_limit(own: Budget, project: str, issue: int) -> Limit:
    """The limit of an issue."""
    assert own.issue
    return Limit(
        *(Scope.ISSUE, name_issue(project, issue), own.issue.amount),
        words="for this issue",
        command=f"{RAISE} {project} {issue} AMOUNT",
        allows_unknown=own.allows_unknown,
    )


def _list_for_session(session: Session, own: Budget) -> Iterator[Limit]:
    if own.session:
        target = session.address.replace("#", " ")
        yield Limit(
            *(Scope.SESSION, name_session(session.name, find_beginning(session))),
            own.session.amount,
            words="for this session",
            command=f"{RAISE} {target} --session AMOUNT",
            allows_unknown=own.allows_unknown,
        )


def list_for_project(
    project: ProjectSettings, own: Budget, machine: Budget, now: float
) -> Iterator[Limit]:
    """Those of a project: its day, unless that limit is the machine's, and all of it."""
    name = project.name
    if own.day and own.day != machine.day:
        first, last = _name_days(now)
        yield Limit(
            *(Scope.PROJECT_DAY, name_project_day(name, first), own.day.amount),
            last_name=name_project_day(name, last),
            words=f"for {name} today",
            command=f"{RAISE} {name} --day AMOUNT",
            ends_at=find_midnight(now),
            allows_unknown=own.allows_unknown,
        )
    if own.project:
        yield Limit(
            *(Scope.PROJECT, name, own.project.amount),
            words=f"for {name}",
            command=f"{RAISE} {name} --project AMOUNT",
            allows_unknown=own.allows_unknown,
        )


def list_for_machine(machine: Budget, now: float) -> Iterator[Limit]:
    """That of a day over all projects."""
    if machine.day:
        first, last = _name_days(now)
        yield Limit(
            *(Scope.DAY, first, machine.day.amount),
            last_name=last,
            words="for today",
            command=f"{RAISE} --day AMOUNT",
            ends_at=find_midnight(now),
            allows_unknown=machine.allows_unknown,
        )


def _name_days(now: float) -> tuple[str, str]:
    """Today, and the last day to come that counts for today."""
    ahead = time.localtime(now + DAYS_AHEAD * DAY_S)
    return time.strftime(DAY, time.localtime(now)), time.strftime(DAY, ahead)


def find_midnight(now: float) -> float:
    """When the next day begins, where this machine is."""
    today = time.localtime(now)
    tomorrow = (today.tm_year, today.tm_mon, today.tm_mday + 1, 0, 0, 0, 0, 0, -1)
    return time.mktime(tomorrow)
