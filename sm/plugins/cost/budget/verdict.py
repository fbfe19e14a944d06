"""Verdicts: what a session may still use, and whether there is room for one more issue.

Both raise if nobody knows what was used: then the core holds what has a limit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from sm.base.act import ASK_DOCTOR
from sm.base.errors import TemporaryError
from sm.base.issue_id import IssueId, read_part
from sm.config.schema import ProjectSettings
from sm.config.shapes import read_section
from sm.issues.placements import list_placements
from sm.issues.rules.allowance import Allowance, LimitStage, find_strictest
from sm.plugins.cost.budget.balances import Balances, measure, open_balances
from sm.plugins.cost.budget.limits import counts_unknown, list_limits, list_shared
from sm.plugins.cost.budget.rules import (
    BudgetLimit,
    Expected,
    admit,
    estimate,
    expect,
    needs_prices,
    weigh,
)
from sm.plugins.cost.budget.settings import Budget
from sm.plugins.cost.ledger import nodes, progress
from sm.plugins.cost.ledger.scopes import Scope, name_issue
from sm.plugins.cost.settings import find_ledger
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession, Session
from sm.store import sqlite_file
from sm.store.files import list_names
from sm.store.paths import Root, prefix_sessions

UNREAD = "budget:unread"
"""The matter of an agent CLI whose use nobody knows."""
OTHERS = "budget:others"
"""The matter of another session whose records are not read."""


def read(session: Session) -> Allowance | None:
    """Read what is left to a session of its strictest limit; None without a limit.

    Raises:
        StateError, TemporaryError: it is not known what was used.

    """
    limits = list_limits(session, time.time())
    if not limits:
        return None
    progress.check_sight(session, allows_unknown=all(limit.allows_unknown for limit in limits))
    path = find_ledger(session.machine.settings)
    if progress.read_size(session) and not sqlite_file.is_there(path):
        progress.ask_again(session)
        raise _make_gone_error(path)
    with open_balances(path) as book:
        measured = list(measure(book, limits, progress.count_followed(session.root)))
    weighed = [weigh(limit, used) for limit, used in measured]
    found = find_strictest([*weighed, *_wait_for_others(session, limits)])
    if found and any(needs_prices(found.stage, used, 0.0) for _, used in measured):
        progress.ask_again(session)  # such as when a limit in money came later than the requests
    return found


def _wait_for_others(session: Session, limits: list[BudgetLimit]) -> Iterator[Allowance]:
    """Wait for another session of a shared limit, whose use is not known: go on after this turn."""
    if any(limit.is_shared for limit in limits):
        blind = progress.find_others(session.root, session.name)
        if blind:
            yield Allowance(LimitStage.HELD, OTHERS, blind, act=ASK_DOCTOR)


def _make_gone_error(path: Path) -> TemporaryError:
    return TemporaryError(f"'{path}' is gone: the next passes make it anew from what is at hand")


# One more issue


def find_objection(project: Project) -> Allowance | None:
    """Find what is against one more issue of the project now; None if there is room for it.

    Raises:
        StateError, TemporaryError: it is not known what was used.

    """
    now = time.time()
    unread = progress.tell_unread(project.profile)
    if unread and counts_unknown(project.config, project.settings, now):
        # No issue is begun whose agent would be held at once.
        advice = "set budget.unknown to allow, or use an agent CLI that docs/COST.md names"
        return Allowance(LimitStage.HELD, UNREAD, f"a budget is set, and {unread}: {advice}")
    limits = list_shared(project.config, project.settings, now)
    if not limits:
        return None
    blind = progress.find_others(project.root, "")
    if not blind and any(not limit.allows_unknown for limit in limits):
        blind = nodes.find_silent(project.config, project.root)
    if blind:
        raise TemporaryError(blind)
    path, followed = find_ledger(project.config), progress.count_followed(project.root)
    if followed and not sqlite_file.is_there(path):
        raise _make_gone_error(path)
    with open_balances(path) as book:
        found = [
            admit(limit, used, _expect(book, project, limit))
            for limit, used in measure(book, limits, followed)
        ]
    return find_strictest(filter(None, found))


def _expect(book: Balances, project: Project, limit: BudgetLimit) -> Expected:
    """Return what open issues that share the limit will still use, and what one more would."""
    unit, config = limit.amount.unit, project.config
    of_open = list[tuple[int, int]]()
    for_one = 0
    for settings in config.projects if limit.scope is Scope.DAY else (project.settings,):
        known = book.list_issues(settings.name, unit)
        open_ones = {name_issue(settings.name, one) for one in _list_open(project.root, settings)}
        each = _estimate(settings, limit, known, open_ones)
        of_open += [(each, known.get(one, 0)) for one in open_ones]
        if settings.name == project.name:
            for_one = each
    return expect(for_one, of_open)


def _estimate(
    settings: ProjectSettings, limit: BudgetLimit, known: Mapping[str, int], open_ones: set[str]
) -> int:
    own, unit = read_section(settings, Budget), limit.amount.unit
    past = [used for name, used in known.items() if name not in open_ones and used]
    told = own.estimate.amount if own.estimate else None
    most = own.issue.amount if own.issue else None
    return estimate(
        past,
        told.count if told and told.unit is unit else None,
        min(most.count, limit.height) if most and most.unit is unit else 0,
    )


def _list_open(root: Root, settings: ProjectSettings) -> set[IssueId]:
    """The issues that are worked on, here or elsewhere.

    Those that are just being taken up have a slot.
    """
    prefix = prefix_sessions(settings.name)
    directory = root.project(settings.name)
    begun = [
        name.removeprefix(prefix) for name in list_names(directory.slots) if name.startswith(prefix)
    ]
    elsewhere = {one.issue for one in list_placements(directory)}
    return (
        elsewhere
        | {issue for part in begun if (issue := read_part(part))}
        | {
            session.issue
            for session in registry.list_all(root, lambda _: None)
            if isinstance(session, IssueSession) and session.project_name == settings.name
        }
    )
