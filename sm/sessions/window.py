"""Reads what the agent CLI said of its context: its own id, how and when it began, its summary."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from sm.base.clock import is_within
from sm.base.foreign import read_seconds
from sm.store.bounded import parse_json
from sm.store.files import find_mtime, read_harmless
from sm.store.paths import SessionDir


class Window(Struct, frozen=True):
    """A context by the agent CLI's own id; `conversation` is the transcript.

    `begun` is startup, resume, clear or compact. `at` is when that was said, seconds since 1970.
    Unknown values are '', 0 or None.
    """

    id: str = ""
    begun: str = ""
    conversation: Path | None = None
    at: float = 0.0


def read(directory: SessionDir) -> Window:
    """Return the context that began last; an empty one if no hook told of one, or it is damaged."""
    try:
        payload = parse_json(read_harmless(directory.context) or b"{}")
        if not isinstance(payload, dict):
            return Window()
        ident = _text(payload.get("session_id"))
        return Window(
            id=ident,
            begun=_text(payload.get("source")),
            conversation=_path(_text(payload.get("transcript_path"))),
            at=find_mtime(directory.context) if ident else 0.0,
        )
    except ValueError:
        return Window()


COMPACTION_S = 600.0
"""Seconds; no compaction takes longer."""


def is_compacting(directory: SessionDir) -> bool:
    """Say whether the context is being compacted, which nothing should interrupt."""
    said = read_harmless(directory.compacting, 40).decode("ascii", "replace").strip()
    return is_within(COMPACTION_S, read_seconds(said) or 0.0)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _path(text: str) -> Path | None:
    """Return the path, None if no file can have it; raise ValueError for what is no text."""
    os.fsencode(text)
    return Path(text) if text and "\0" not in text else None
