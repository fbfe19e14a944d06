"""What an issue's agent is told of the phase protocol."""

from __future__ import annotations

from sm.prompts import protocol
from sm.session.registry import IssueSession
from sm.session.submission import Target


def of(session: IssueSession) -> str:
    """How the agent of this session is to signal."""
    return protocol(
        phase_file=str(session.root.phase(session.project, session.issue)),
        remote=session.remote,
        branch=session.branch,
        base=session.base,
    )


def repeated(target: Target) -> str:
    """The same for a new context of an agent whose system prompt does not hold it; '' for others.

    What stands in the system prompt outlives a clear and a start anew, what was in a message does
    not.
    """
    session = target.session
    if not isinstance(session, IssueSession) or target.profile.system_prompt:
        return ""
    return of(session)
