"""Messages that a hook has handed to the agent, at a turn's end or within it, not yet proven.

The next event of the same turn proves them, to the hooks. An interruption or a compaction may have
swallowed what is left after that turn: then the agent's transcript tells.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from sm.base.foreign import read_seconds
from sm.messages import queue
from sm.messages.queue import MessageFolder
from sm.store.files import read_guarded, write_atomic
from sm.store.paths import SessionDir

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


def read(directory: SessionDir) -> dict[str, Handover]:
    """Return all offers, by message id."""
    return dict(offer for line in _lines(directory) if (offer := _parse(line)))


def tidy(directory: SessionDir) -> None:
    """Keep the lines of messages still under way; a hook that finds others may wait for them."""
    lines = [line for line in _lines(directory) if line]
    left = [line for line in lines if _is_under_way(directory, line)]
    if left != lines:
        write_atomic(directory.offered, "".join(f"{line}\n" for line in left))


def _is_under_way(directory: SessionDir, line: str) -> bool:
    if (offer := _parse(line)) is None:
        return False
    ident = offer[0]
    return queue.find_place(directory, ident) is MessageFolder.HANDED and not queue.is_accepted(
        directory, ident
    )


def _parse(line: str) -> tuple[str, Handover] | None:
    """Parse `NAME CONTEXT PROMPT [TIME]`; None for anything else."""
    match line.split():
        case [name, context, prompt, *rest] if len(rest) <= 1:
            at = _seconds(rest[0]) if rest else 0.0
            found = queue.NAME.fullmatch(name)
            return (found[2], Handover(context, prompt, at)) if found else None
    return None


def _seconds(word: str) -> float:
    return read_seconds(word) or 0.0


def _lines(directory: SessionDir) -> Iterator[str]:
    yield from (read_guarded(directory.offered) or b"").decode("ascii", "replace").split("\n")
