"""Meter that the core asks what a session may still use, and whether one more issue may begin.

It is asked in each look at a session, so without a budget it costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sm.config.schema import MachineSettings, ProjectSettings
from sm.config.shapes import read_section
from sm.issues.meters import Meter, SetLimit
from sm.issues.rules.allowance import Allowance
from sm.plugins.cost.budget.remote_limits import may_be_under
from sm.plugins.cost.budget.settings import Budget
from sm.sessions.project import Project
from sm.sessions.session import IssueSession, Session

if TYPE_CHECKING:
    from sm.issues.runners import Elsewhere

PRELOADED = ("sm.plugins.cost.budget.verdict", "sm.plugins.cost.ledger.database", "sm.store.sqlite")
"""Modules that passes import only with a budget; their server has them for all."""
NONE = Budget()


def read(session: Session) -> Allowance | None:
    """Read what is left to a session of its strictest limit; None without a limit.

    Raises:
        StateError, TemporaryError: it is not known what was used.

    """
    if not has_budget(session):
        return None
    from sm.plugins.cost.budget import verdict

    return verdict.read(session)


def find_objection(project: Project) -> Allowance | None:
    """Find what is against one more issue of the project now; None if there is room for it.

    Raises:
        StateError, TemporaryError: it is not known what was used.

    """
    if not (_is_set(project.settings) or _is_set(project.config)):
        return None
    from sm.plugins.cost.budget import verdict

    return verdict.find_objection(project)


def has_budget(session: Session) -> bool:
    """Whether the session may be under a limit."""
    if may_be_under(session):
        return True
    if isinstance(session, IssueSession):
        return _is_set(session.project.settings) or _is_set(session.project.config)
    return _is_set(session.machine.settings)


def _is_set(holder: MachineSettings | ProjectSettings) -> bool:
    return read_section(holder, Budget) != NONE


def list_set(asked: Session | Project | Elsewhere) -> Iterable[SetLimit]:
    """Return the limits that a session is under, or that those of a project share.

    Raises:
        StateError, TemporaryError: it is not known what was used.

    """
    from sm.plugins.cost.budget import raises

    return raises.list_set(asked)


METER = Meter(read, find_objection, list_set)
