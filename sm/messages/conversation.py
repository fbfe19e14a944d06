"""Conversation of an agent: what it was told, by its CLI's transcript and by its hooks.

A message that a hook has handed over, at a turn's end or within it, is proven by the next event of
the same turn. An interruption or a compaction may have swallowed what is left after that turn: then
the transcript tells.

`told` is what its hooks said when the caller looked: whether there is a transcript to look into.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from sm.adapters.agent import transcript
from sm.base.foreign import read_seconds
from sm.messages import queue
from sm.messages.decide import Heard
from sm.messages.draft import find_way
from sm.messages.queue import Message, MessageFolder
from sm.sessions import window
from sm.sessions.agent_state import AgentState
from sm.sessions.session import Session
from sm.store.files import read_guarded, write_atomic
from sm.store.paths import SessionDir


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


COMPACTED = "compacted:"
"""Mark in place of the prompt: a compaction has come between, at the time that follows."""


class Handover(Struct, frozen=True):
    """Context and prompt of the agent that a message was handed to, and when; 0: not known."""

    context: str
    prompt: str
    at: float = 0.0

    @property
    def compacted_at(self) -> float:
        """Time of a compaction in between; 0 for none, or if a hook could not write it whole."""
        marked = self.prompt.startswith(COMPACTED)
        return _seconds(self.prompt.removeprefix(COMPACTED)) if marked else 0.0


def read_offers(directory: SessionDir) -> dict[str, Handover]:
    """Return all offers, by message id."""
    return dict(offer for line in _offer_lines(directory) if (offer := _parse_offer(line)))


def tidy_offers(directory: SessionDir) -> None:
    """Keep the lines of messages still under way; a hook that finds others may wait for them."""
    lines = [line for line in _offer_lines(directory) if line]
    left = [line for line in lines if _is_under_way(directory, line)]
    if left != lines:
        write_atomic(directory.offered, "".join(f"{line}\n" for line in left))


def _is_under_way(directory: SessionDir, line: str) -> bool:
    if (offer := _parse_offer(line)) is None:
        return False
    ident = offer[0]
    return queue.find_place(directory, ident) is MessageFolder.HANDED and not queue.is_accepted(
        directory, ident
    )


def _parse_offer(line: str) -> tuple[str, Handover] | None:
    """Parse `NAME CONTEXT PROMPT [TIME]`; None for anything else."""
    match line.split():
        case [name, context, prompt, *rest] if len(rest) <= 1:
            at = _seconds(rest[0]) if rest else 0.0
            found = queue.NAME.fullmatch(name)
            return (found[2], Handover(context, prompt, at)) if found else None
    return None


def _seconds(word: str) -> float:
    return read_seconds(word) or 0.0


def _offer_lines(directory: SessionDir) -> Iterator[str]:
    yield from (read_guarded(directory.offered) or b"").decode("ascii", "replace").split("\n")
