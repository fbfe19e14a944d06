"""What an issue's agent is told of the phase protocol, and of people who follow its work."""

from __future__ import annotations

from sm.channels import people
from sm.sessions.session import Session


def repeat(session: Session) -> str:
    """What a new context of an issue's agent has to be told again; '' for nothing.

    A system prompt outlives a clear and a new start. A message does not.
    """
    if not session.issue:
        return ""
    signal = "" if session.profile.system_prompt else session.explain_protocol()
    channels = people.introduce(session, people.open_channels(session))
    return "\n\n".join(part for part in (signal, *channels) if part)
