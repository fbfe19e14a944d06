"""Callers of an act: the name of a person, and what an agent may not do to its own work."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sm.base.errors import UsageError
from sm.base.issue_id import IssueId

if TYPE_CHECKING:
    from sm.sessions.caller import Caller
    from sm.sessions.project import Project
    from sm.sessions.session import IssueSession
    from sm.store.paths import Root


def identify_agent(project: Project) -> IssueSession | None:
    """Return the session whose agent has called this program; None for any other caller.

    Raises:
        CallerError: the environment names another session than the process is in.

    """
    from sm.sessions.caller import identify
    from sm.sessions.session import IssueSession

    session = identify(project.root, os.environ).session
    return session if isinstance(session, IssueSession) else None


def is_agent(root: Root) -> bool:
    """Whether an agent has called this program.

    Raises:
        CallerError: the environment names another session than the process is in.

    """
    from sm.sessions.caller import identify

    return identify(root, os.environ).session is not None


def leave_to_others(project: Project, act: str, *, issue: IssueId = 0, pull: int = 0) -> None:
    """Refuse the act to the agent that has called this program, as `check_not_own` does.

    Raises:
        UsageError: it is that agent.
        CallerError: the environment names another session than the process is in.

    """
    from sm.sessions.caller import identify

    check_not_own(identify(project.root, os.environ), project, act, issue=issue, pull=pull)


def check_not_own(
    caller: Caller, project: Project, act: str, *, issue: IssueId = 0, pull: int = 0
) -> None:
    """Refuse the act to the agent that works on `issue`, or whose pull request is `pull`.

    `act` says what is refused. On its own work an agent speaks by comments and merges; it does not
    pass as a person who decides.

    Raises:
        UsageError: it is that agent.

    """
    from sm.sessions.session import IssueSession

    agent = caller.session
    if not isinstance(agent, IssueSession) or agent.record.project != project.name:
        return
    own = project.forge.pulls.find_newest(agent.record.branch) if pull else None
    if own and own.number == pull:
        thing = f"pull request {pull}"
    elif issue == agent.issue:
        thing = f"issue {issue}"
    else:
        return
    raise UsageError(
        f"this is the session '{agent.label}', and {thing} is its own: only others may {act}"
    )


def find_author_name(project: Project, given: str | None) -> str:
    """Find the name of a review, a comment or a merge: `given`, else git's user, else the login."""
    from sm.adapters.git_call import call
    from sm.sessions.project import find_person

    if given is not None:
        if not given.strip():
            raise UsageError("--as is empty: give a name")
        return given
    name = call(project.settings.repo, "config", "user.name", accept=(0, 1)).stdout.strip()
    return name or find_person()
