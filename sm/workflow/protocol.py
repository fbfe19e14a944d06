"""What an issue's agent is told of the phase protocol."""

from __future__ import annotations

from sm import bridgetexts
from sm.prompts import protocol
from sm.session.registry import IssueSession
from sm.session.submission import Target
from sm.workflow import handover, host


def of(session: IssueSession) -> str:
    """How the agent of this session is to signal."""
    return protocol(
        phase_file=str(session.root.phase(session.project, session.issue)),
        remote=session.remote,
        branch=session.branch,
        base=session.base,
    )


def repeated(target: Target) -> str:
    """What a new context of an issue's agent has to be told again; '' for nothing.

    What stands in the system prompt outlives a clear and a start anew, what was in a message does
    not.
    """
    session = target.session
    if not isinstance(session, IssueSession):
        return ""
    database = host.of(session).machine.bridge_database
    chat = bridgetexts.note(handover.about(database, session))
    signal = "" if target.profile.system_prompt else of(session)
    return "\n\n".join(part for part in (signal, chat) if part)
