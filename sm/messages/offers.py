"""Messages that a hook has handed to the agent, at a turn's end or within it, not yet proven.

The next event of the same turn proves them, to the hooks. What is left after that turn, an
interruption or a compaction may have swallowed: then the agent's transcript tells.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from msgspec import Struct

from sm.adapters.agent.screen import Prompt, Screen
from sm.foreign import read_seconds
from sm.messages import queue
from sm.messages.interrupt import COMPACTION_S
from sm.messages.queue import Message, Place
from sm.messages.typing import has_heard, reads_conversation
from sm.sessions import agent_state
from sm.sessions.agent_state import State
from sm.sessions.session import Session
from sm.store.files import read_guarded, write_atomic
from sm.store.paths import SessionDir

COMPACTED = "compacted:"
"""In place of the prompt: a compaction has come between, at the time that follows."""
SETTLED_S = 1.0
"""An agent CLI writes its transcript so much later, at most."""
INTERRUPTED_S = 3.0
"""An idle prompt within a turn means so long after a message was handed over that a person has
interrupted the agent, of which no hook tells."""


class Offer(Struct, frozen=True):
    """To which context and prompt of the agent a message was handed, and when; 0: not known."""

    context: str
    prompt: str
    at: float = 0.0

    @property
    def compacted_at(self) -> float:
        """When a compaction came between; 0 where none did, or a hook could not write it whole."""
        marked = self.prompt.startswith(COMPACTED)
        return _seconds(self.prompt.removeprefix(COMPACTED)) if marked else 0.0


def read(directory: SessionDir) -> dict[str, Offer]:
    """All of them, by message id."""
    return dict(offer for line in _lines(directory) if (offer := _parse(line)))


def is_pending(session: Session, offer: Offer) -> bool:
    """Whether the proof may still come, from a hook or the transcript."""
    return _is_of_turn(session, offer) or _is_fresh(session) or reads_conversation(session)


def settle(session: Session, screen: Screen, message: Message, offer: Offer) -> bool:
    """Find out about a message that was handed over; False while it has to be waited for.

    Where no transcript can be read it stays as it is: it is not told twice, and holds no other up.
    """
    interrupted = screen.prompt is Prompt.IDLE and time.time() >= offer.at + INTERRUPTED_S
    if _is_fresh(session) or (_is_of_turn(session, offer) and not interrupted):
        return False
    heard = _has_heard(session, message, offer)
    if heard is None:
        return not reads_conversation(session)
    directory = session.dir
    if heard:
        queue.accept(directory, message.id)
        queue.settle(directory, message)
    else:  # its client was stopped before it read what the hook said, or has summed it up
        queue.move(directory, message, Place.HANDED, Place.WAITING)
    tidy(directory)
    return True


def tidy(directory: SessionDir) -> None:
    """Keep the lines of what is still under way; a hook that finds others may wait for them."""
    lines = [line for line in _lines(directory) if line]
    left = [line for line in lines if _is_under_way(directory, line)]
    if left != lines:
        write_atomic(directory.offered, "".join(f"{line}\n" for line in left))


def _is_of_turn(session: Session, offer: Offer) -> bool:
    """Whether the turn in which it was handed over goes on, as far as hooks tell."""
    now = agent_state.read(session.dir)
    same_turn = now.context in ("", offer.context) and now.prompt == offer.prompt
    return same_turn and now.state is State.BUSY


def _is_fresh(session: Session) -> bool:
    """Whether a turn has begun or ended a moment ago: the transcript may lag behind."""
    return time.time() < agent_state.read(session.dir).since + SETTLED_S


def _has_heard(session: Session, message: Message, offer: Offer) -> bool | None:
    """None while the transcript says nothing of the compaction, and where it cannot be read."""
    since = offer.at or message.created_at
    heard = has_heard(session, message.text, since=since, compacted_at=offer.compacted_at)
    if heard is None and time.time() >= offer.compacted_at + COMPACTION_S:
        return has_heard(session, message.text, since=since)  # it came to nothing
    return heard


def _is_under_way(directory: SessionDir, line: str) -> bool:
    if (offer := _parse(line)) is None:
        return False
    ident = offer[0]
    return queue.place(directory, ident) is Place.HANDED and not queue.is_accepted(directory, ident)


def _parse(line: str) -> tuple[str, Offer] | None:
    """`NAME CONTEXT PROMPT [TIME]`; None for anything else."""
    match line.split():
        case [name, context, prompt, *rest] if len(rest) <= 1:
            at = _seconds(rest[0]) if rest else 0.0
            found = queue.NAME.fullmatch(name)
            return (found[2], Offer(context, prompt, at)) if found else None
    return None


def _seconds(word: str) -> float:
    return read_seconds(word) or 0.0


def _lines(directory: SessionDir) -> Iterator[str]:
    yield from (read_guarded(directory.offered) or b"").decode("ascii", "replace").split("\n")
