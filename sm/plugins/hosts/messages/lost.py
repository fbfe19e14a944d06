"""Messages for sessions elsewhere that came to nothing, of which a person is told once."""

from __future__ import annotations

from msgspec import Struct

from sm.store.damage import read_rebuildable
from sm.store.files import write_json
from sm.store.paths import ProjectDir

SHOWN_S = 24 * 3600.0
"""Time for which a person sees one among the needs: enough to be told of it, and to look."""
MOST = 20
"""Greatest number of messages that are kept: the last ones."""


class LostMessage(Struct, frozen=True):
    """Lost message, and why; `at` is when that was known, in seconds since 1970."""

    id: str
    session: str
    why: str
    at: float


def note(directory: ProjectDir, message: LostMessage) -> None:
    """Record a lost message, so that a person is told of it.

    Raises:
        StateError: it cannot be written.

    """
    known = [one for one in _read(directory) if one.id != message.id]
    write_json(directory.lost_messages, [*known, message][-MOST:], durable=True)


def list_recent(directory: ProjectDir, now: float) -> list[LostMessage]:
    """Return the lost messages of the last day, the oldest first."""
    return [one for one in _read(directory) if 0 <= now - one.at < SHOWN_S]


def _read(directory: ProjectDir) -> list[LostMessage]:
    return read_rebuildable(directory.lost_messages, list[LostMessage]) or []
