"""What the operations return, as JSON has it: the same for tools and for `--json`. Pure."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from sm.bridge.records import Entry, Handoff, Thread

Shape = dict[str, Any]


def created(thread: Thread) -> Shape:
    """The new handoff and its first entry."""
    return row(thread.handoff) | {"entries": [structs.asdict(entry) for entry in thread.entries]}


def got(thread: Thread) -> Shape:
    """All of a handoff, and what of it is new to the one who asks."""
    new = [structs.asdict(entry) for entry in thread.new_entries]
    return created(thread) | {"new_entries": new, "new_count": len(new)}


def added(handoff: Handoff, entry: Entry) -> Shape:
    """The handoff as it is now, and the entry."""
    return row(handoff) | {"entry": structs.asdict(entry)}


def row(handoff: Handoff) -> Shape:
    """The handoff alone."""
    return {"handoff": structs.asdict(handoff)}
