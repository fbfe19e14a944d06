"""What the agent CLI has said of its context when it began: its own id of it, and how it began."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from sm.store.files import read_harmless
from sm.store.paths import SessionDir


@dataclass(frozen=True)
class Context:
    """A context, by the agent CLI's own id; `conversation` is where it is written down.

    `begun` is startup, resume, clear or compact. What nobody has told is '' or None.
    """

    id: str = ""
    begun: str = ""
    conversation: Path | None = None


def read(directory: SessionDir) -> Context:
    """The context that began last; an empty one where no hook has told of any, or it is damaged."""
    try:
        payload = json.loads(read_harmless(directory.context) or b"{}")
        return Context(
            id=_text(payload.get("session_id")),
            begun=_text(payload.get("source")),
            conversation=_path(_text(payload.get("transcript_path"))),
        )
    except (ValueError, AttributeError, RecursionError):
        return Context()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _path(text: str) -> Path | None:
    """The path, None where no file can have it; raises ValueError for what is no text."""
    os.fsencode(text)
    return Path(text) if text and "\0" not in text else None
