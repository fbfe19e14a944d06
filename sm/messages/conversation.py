"""Looks up in the agent CLI's own transcript what the agent was told.

`told` is what its hooks said when the caller looked: whether there is a transcript to look into.
"""

from __future__ import annotations

import os
from pathlib import Path

from sm.adapters.agent import transcript
from sm.messages.decide import Heard
from sm.messages.draft import find_way
from sm.messages.queue import Message
from sm.sessions import window
from sm.sessions.agent_state import AgentState
from sm.sessions.session import Session


def is_kept(session: Session, told: AgentState) -> bool:
    """Say whether the agent CLI writes a transcript that is understood: only Claude Code's is.

    The file comes a moment after the first prompt of a context.
    """
    return _find_transcript(session, told) is not None


def is_readable(session: Session, told: AgentState) -> bool:
    """Say whether the transcript can be looked into.

    A file that is not there tells nothing, except of a context that has not had a prompt yet.
    """
    path = _find_transcript(session, told)
    return path is not None and (path.is_file() or not told.prompt)


def _find_transcript(session: Session, told: AgentState) -> Path | None:
    is_understood = session.profile.keeps_transcript and told.context
    return window.read(session.dir).conversation if is_understood else None


def look_up_typed(session: Session, told: AgentState, message: Message, *, since: float) -> Heard:
    """Say whether the agent was told a message that was typed at `since`, seconds since 1970."""
    text, beside = _word(session, message), _line(session, message)
    return _look_up(session, told, text, since=since, beside=beside)


def look_up_offered(
    session: Session,
    told: AgentState,
    message: Message,
    *,
    since: float,
    compacted_at: float = 0.0,
) -> Heard:
    """Say whether the agent was told a message that a hook gave to it at `since`."""
    return _look_up(session, told, message.text, since=since, compacted_at=compacted_at)


def _look_up(
    session: Session,
    told: AgentState,
    text: str,
    *,
    since: float,
    compacted_at: float = 0.0,
    beside: str = "",
) -> Heard:
    if not is_readable(session, told):
        return Heard.UNKNOWN
    heard = transcript.has_heard(
        _path(session), text, since=since, compacted_at=compacted_at, beside=beside
    )
    return Heard.UNKNOWN if heard is None else Heard.YES if heard else Heard.NO


def is_taken_back(
    session: Session, told: AgentState, message: Message, since: float, interrupted_at: float
) -> bool | None:
    """Say whether the agent CLI goes on as if a typed message had not been; None: not yet known.

    False where its transcript cannot be read: the receipt stands.
    """
    if not is_readable(session, told):
        return False
    return transcript.is_taken_back(
        _path(session),
        _word(session, message),
        since=since,
        interrupted_at=interrupted_at,
        beside=_line(session, message),
    )


def is_interrupted(session: Session, told: AgentState, since: float) -> bool:
    """Say whether the agent CLI has ended a turn since then, and keeps its prompt."""
    return is_readable(session, told) and transcript.is_interrupted(_path(session), since)


def _path(session: Session) -> Path:
    return window.read(session.dir).conversation or Path(os.devnull)


def _word(session: Session, message: Message) -> str:
    """Return what the agent is told by a typed message; of a long message, its beginning."""
    way = find_way(session, message)
    return way.added or way.line


def _line(session: Session, message: Message) -> str:
    """Return the line that was typed, where a hook adds the text; '' where the text was typed."""
    way = find_way(session, message)
    return way.line if way.answer else ""
