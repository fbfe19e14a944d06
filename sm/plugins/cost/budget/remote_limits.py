"""Limits that other installations have set for their sessions on this node, beside its ledger.

They are for the sessions that were placed here, and for those that their agents have begun. Passes
ask for them, so without such a file, and for any other session, it costs next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from sm.config.schema import MachineSettings
from sm.plugins.cost.ledger.progress import find_beginning
from sm.plugins.cost.settings import find_ledger
from sm.sessions.session import IssueSession, Session
from sm.store import lock
from sm.store.damage import read_rebuildable
from sm.store.files import write_json

if TYPE_CHECKING:
    from sm.plugins.cost.budget.rules import BudgetLimit, RemoteLimit

    ByHome = Mapping[str, tuple[RemoteLimit, ...]]


def locate(settings: MachineSettings) -> Path:
    """Return where they are; the ledger's folder is one of the machine, as the limits are."""
    ledger = find_ledger(settings)
    return ledger.with_name(f"{ledger.name}.limits")


def may_be_under(session: Session) -> bool:
    """Whether the session may be under any of them."""
    is_meant = session.attempt if isinstance(session, IssueSession) else session.record.parent
    return bool(is_meant) and os.path.lexists(locate(session.machine.settings))


def list_told(session: Session, now: float) -> list[BudgetLimit]:
    """Return those that the session is under."""
    if not may_be_under(session):
        return []
    return [
        _name_own(make_limit(one, now), session)
        for one in list_all(session.machine.settings)
        if one.project in ("", session.project_name) and one.issue in (0, session.issue)
    ]


def _name_own(limit: BudgetLimit, session: Session) -> BudgetLimit:
    """Return it with the name that the session's own sums have here, if it is about those."""
    from sm.plugins.cost.ledger.scopes import Scope, name_session

    if limit.scope is not Scope.SESSION:
        return limit
    name = name_session(session.name, find_beginning(session))
    return structs.replace(limit, name=name, last_name=name)


def read(settings: MachineSettings) -> ByHome:
    """Return all of them; none if the file is damaged, until they are told again."""
    from sm.plugins.cost.budget.rules import RemoteLimit

    return read_rebuildable(locate(settings), dict[str, tuple[RemoteLimit, ...]]) or {}


def keep(settings: MachineSettings, home: str, limits: tuple[RemoteLimit, ...]) -> bool:
    """Put those of an installation in the place of its earlier ones; say whether any are new."""
    path = locate(settings)
    if not limits and not path.exists():
        return False
    with lock.hold(path.with_name(f"{path.name}.lock"), timeout_s=10.0):
        known = read(settings)
        if known.get(home, ()) == limits:
            return False
        write_json(path, {**known, home: limits})
    return True


def make_limit(told: RemoteLimit, now: float) -> BudgetLimit:
    """Return it as passes weigh it: what was used elsewhere is beside what is in our ledger."""
    from sm.base.act import Act, ActKind, run
    from sm.plugins.cost.budget.rules import BudgetLimit, merge
    from sm.plugins.cost.ledger.amount import Amount

    is_over = told.ends_at is not None and now >= told.ends_at
    return BudgetLimit(
        told.span.scope,
        told.span.first,
        Amount(told.unit, told.height),
        last_name=told.span.last,
        words=told.words,
        act=Act(ActKind.RAISE, limit=told.named) if told.named else run(told.command),
        ends_at=None if is_over else told.ends_at,
        allows_unknown=told.allows_unknown,
        is_told=True,
        elsewhere=tuple(merge(() if is_over else told.rows, told.heard)),
    )


def list_all(settings: MachineSettings) -> Iterator[RemoteLimit]:
    """Each limit that was told, whoever is under it."""
    for limits in read(settings).values():
        yield from limits
