"""Shapes the results of the operations as JSON: the same for tools and for `--json`. Pure."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from sm.plugins.chat.threads.records import Entry, Handoff, Thread

Shape = dict[str, Any]


def shape_created(thread: Thread) -> Shape:
    """Return the new thread and its first entry."""
    return shape_handoff(thread.handoff) | {
        "entries": [structs.asdict(entry) for entry in thread.entries]
    }


def shape_thread(thread: Thread) -> Shape:
    """Return a whole thread, and what is new for the caller."""
    new = [structs.asdict(entry) for entry in thread.new_entries]
    return shape_created(thread) | {"new_entries": new, "new_count": len(new)}


def shape_added(handoff: Handoff, entry: Entry) -> Shape:
    """Return the thread in its new state, and the entry."""
    return shape_handoff(handoff) | {"entry": structs.asdict(entry)}


def shape_handoff(handoff: Handoff) -> Shape:
    """Return the thread alone."""
    return {"handoff": structs.asdict(handoff)}
