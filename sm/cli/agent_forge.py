"""Forge of a session's agent: the session's reactor writes, and the last look is shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sm.acts.permission import identify_agent
from sm.base.decoder import decode
from sm.base.errors import UsageError
from sm.base.issue_id import IssueId

if TYPE_CHECKING:
    from collections.abc import Collection

    from sm.adapters.forge.model import Issue, IssueState, PullRequest, PullState
    from sm.adapters.forge.trust import Trust
    from sm.issues.act.forge_requests import ForgeVerb
    from sm.issues.look.snapshot import Snapshot
    from sm.sessions.project import Project
    from sm.sessions.session import IssueSession

T = TypeVar("T")


def find_agent(project: Project) -> IssueSession | None:
    """Return the session whose agent calls; None for a person, and for a session without an issue.

    Raises:
        UsageError: it works for another project.
        CallerError: the environment names another session than the process is in.

    """
    session = identify_agent(project)
    if session is None:
        return None
    if session.record.project != project.name:
        raise UsageError(
            f"the agent of '{session.label}' has only the forge of its own project: ask a person"
        )
    return session.provide(project=project)


def ask_for(
    session: IssueSession,
    verb: ForgeVerb,
    number: IssueId,
    shape: type[T],
    *,
    text: str = "",
    head: str = "",
    on_pull: bool = False,
) -> T:
    """Have the session's reactor do it; return the result.

    Raises:
        RefusedRequestError: it is refused.
        TemporaryError: there is no answer in time.

    """
    from sm.issues.act.forge_requests import ask, make_request

    asked = make_request(verb, number, text=text, head=head, on_pull=on_pull)
    return decode(ask(session, asked), shape)


def list_issues(
    session: IssueSession, state: IssueState | None, labels: Collection[str]
) -> tuple[list[Issue], list[str]]:
    """Return the issues of trusted people as they were last seen, without their texts.

    Raises:
        UsageError: a label is not one of those that `sm` keeps.

    """
    own = session.project.settings.labels
    kept = {own.backlog, own.in_progress, own.blocked}
    if unknown := sorted(set(labels) - kept):
        known = ", ".join(sorted(kept))
        raise UsageError(f"agents can list issues by {known}, not by '{unknown[0]}'")
    seen, wanted = _last_whole(session), set(labels)
    trust = seen.trust(session.project.settings)
    found = [
        issue
        for issue in seen.issues
        if state in (None, issue.state)
        and wanted <= set(issue.labels)
        and trust.includes(issue.author)
    ]
    return found, []


def list_pulls(
    session: IssueSession, state: PullState | None
) -> tuple[list[PullRequest], list[str]]:
    """Return the pull requests of agents and of trusted people as they were last seen."""
    from sm.issues.act.forge_answers import is_readable

    project, seen = session.project, _last_whole(session)
    trust = seen.trust(project.settings)
    found = [
        pull
        for pull in seen.pulls
        if state in (None, pull.state) and is_readable(project, pull, trust)
    ]
    return found, []


def find_seen_trust(session: IssueSession) -> Trust:
    """Return the trusted people among those who have said something, as it was last seen."""
    return _last(session).trust(session.project.settings)


def _last_whole(session: IssueSession) -> Snapshot:
    """Return the last look at everything; if the last look was partial, have another made first."""
    from sm.issues.act.forge_requests import ForgeVerb
    from sm.issues.look.snapshot import Snapshot, last_whole_snapshot

    if _last(session).is_part:
        ask_for(session, ForgeVerb.LOOK, 0, float)
    return last_whole_snapshot(session.project.directory) or Snapshot(0.0)


def _last(session: IssueSession) -> Snapshot:
    from sm.issues.look.snapshot import Snapshot, last_snapshot

    return last_snapshot(session.project.directory) or Snapshot(0.0)
