"""Words for an issue's agent about the phase protocol, and about people who follow its work."""

from __future__ import annotations

from sm.channels import people
from sm.sessions.session import Session


def repeat(session: Session) -> str:
    """Return the words that a new context of an issue's agent needs again; '' for none.

    A system prompt outlives a clear and a new start. A message does not.
    """
    if not session.issue:
        return ""
    signal = "" if session.profile.system_prompt else session.explain_protocol()
    channels = people.introduce(session, people.open_channels(session))
    return "\n\n".join(part for part in (signal, *channels) if part)
