"""What an issue's agent is told of the phase protocol."""

from __future__ import annotations

from sm.plugins.chat.bridge import lookup, texts
from sm.sessions.session import Session


def repeat(session: Session) -> str:
    """What a new context of an issue's agent has to be told again; '' for nothing.

    A system prompt outlives a clear and a new start. A message does not.
    """
    if not session.issue:
        return ""
    database = session.machine.settings.bridge_database
    chat = texts.write_note(lookup.find_about(database, session))
    signal = "" if session.profile.system_prompt else session.explain_protocol()
    return "\n\n".join(part for part in (signal, chat) if part)
