"""Messages for sessions elsewhere that came to nothing, for a person to be told of each once."""

from __future__ import annotations

from msgspec import Struct

from sm.store.damage import read_rebuildable
from sm.store.files import write_json
from sm.store.paths import ProjectDir

SHOWN_S = 24 * 3600.0
"""How long it is among what needs a person: long enough to be told of, and for a glance at it."""
MOST = 20
"""The last ones are kept."""


class LostMessage(Struct, frozen=True):
    """One of them, and why; `at` is when that was known, in seconds since 1970."""

    id: str
    session: str
    why: str
    at: float


def note(directory: ProjectDir, message: LostMessage) -> None:
    """Have a person told of it.

    Raises:
        StateError: it cannot be written.

    """
    known = [one for one in _read(directory) if one.id != message.id]
    write_json(directory.lost_messages, [*known, message][-MOST:], durable=True)


def list_recent(directory: ProjectDir, now: float) -> list[LostMessage]:
    """Return those of the last day, the oldest first."""
    return [one for one in _read(directory) if 0 <= now - one.at < SHOWN_S]


def _read(directory: ProjectDir) -> list[LostMessage]:
    return read_rebuildable(directory.lost_messages, list[LostMessage]) or []
