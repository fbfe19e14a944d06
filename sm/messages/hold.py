"""The file `hold`: while it is there, messages wait, but for those whose ids stand in it.

The agent's hooks look at nothing else.
"""

from __future__ import annotations

from sm.base.errors import StateError
from sm.store.files import discard, read_guarded, write_atomic
from sm.store.paths import SessionDir


def hold_back(directory: SessionDir, passing: tuple[str, ...] = ()) -> None:
    """Hold every message back but those of the ids `passing`."""
    if directory.hold.is_dir():
        discard(directory.hold)
    write_atomic(directory.hold, f"{' '.join(passing)}\n")


def read_passing_ids(directory: SessionDir) -> tuple[str, ...] | None:
    """Return the ids of messages that pass: none if the file is damaged, None if none is held."""
    try:
        found = read_guarded(directory.hold)
    except StateError:
        return ()
    return None if found is None else tuple(found.decode("ascii", "replace").split())


def passes(directory: SessionDir, ident: str) -> bool:
    """Whether the message of this id may be handed to the agent now."""
    passing = read_passing_ids(directory)
    return passing is None or ident in passing
