"""What an issue's agent is told of the phase protocol."""

from __future__ import annotations

from sm.bridge import lookup, texts
from sm.phase import explain_protocol
from sm.sessions.session import IssueSession, Session


def explain(session: IssueSession) -> str:
    """How the agent of this session is to signal."""
    return explain_protocol(
        phase_file=str(session.root.phase(session.record.project, session.issue)),
        remote=session.record.remote,
        branch=session.record.branch,
        base=session.record.base,
    )


def repeat(session: Session) -> str:
    """What a new context of an issue's agent has to be told again; '' for nothing.

    A system prompt outlives a clear and a new start. A message does not.
    """
    if not isinstance(session, IssueSession):
        return ""
    database = session.machine.settings.bridge_database
    chat = texts.write_note(lookup.find_about(database, session))
    signal = "" if session.profile.system_prompt else explain(session)
    return "\n\n".join(part for part in (signal, chat) if part)
