"""Starts the session of one issue because a person asks for it."""

from __future__ import annotations

from sm.adapters.forge.model import IssueState
from sm.base.errors import TemporaryError, UsageError
from sm.base.issue_id import IssueId, spell
from sm.issues.act.unblock import spell_unblock
from sm.issues.start import TakenError, start
from sm.issues.work import claim
from sm.sessions.project import Project
from sm.sessions.session import IssueSession


def start_by_hand(project: Project, number: IssueId) -> IssueSession:
    """Start the session of an open issue, in the backlog or not.

    A running session stays as it is.

    Raises:
        NotFoundError: there is no such issue.
        UsageError: the issue is closed, or blocked.
        TakenError: another installation works on it; the message names it.

    """
    issue = project.forge.issues.read(number)
    blocked = project.settings.labels.blocked
    if issue.state is not IssueState.OPEN:
        raise UsageError(f"issue {spell(number)} is closed: nothing to start")
    if blocked in issue.labels:
        raise UsageError(
            f"issue {spell(number)} is labelled '{blocked}': to have it worked on, "
            f"{spell_unblock(project.settings, number)}"
        )
    try:
        return start(project, issue, by_hand=True)
    except TakenError as error:
        raise TakenError(
            f"{error.message} ({_owner(project, number)}): "
            f"take it over with sm recover {project.name} {number}"
        ) from error


def _owner(project: Project, number: IssueId) -> str:
    try:
        return claim.describe_owner(project.git, project.settings, number) or "just given up"
    except TemporaryError:
        return "its owner cannot be asked for now"
