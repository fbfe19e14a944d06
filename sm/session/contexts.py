"""What the agent CLI has said of its context when it began: its own id of it, and how it began."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from sm.store.files import read_guarded
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
    """The context that began last; an empty one where no hook has told of any."""
    try:
        payload = json.loads(read_guarded(directory.context) or b"{}")
        return Context(
            id=_text(payload.get("session_id")),
            begun=_text(payload.get("source")),
            conversation=Path(path) if (path := _text(payload.get("transcript_path"))) else None,
        )
    except (ValueError, AttributeError):
        return Context()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
