"""What the agent CLI has said of its context when that began: its own id of it, how, and when."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from msgspec import Struct

from sm.store.bounded import parse_json
from sm.store.files import read_harmless
from sm.store.paths import SessionDir


class Context(Struct, frozen=True):
    """A context, by the agent CLI's own id; `conversation` is where it is written down.

    `begun` is startup, resume, clear or compact, `at` when that was said, seconds since 1970. What
    nobody has told is '', 0 or None.
    """

    id: str = ""
    begun: str = ""
    conversation: Path | None = None
    at: float = 0.0


def read(directory: SessionDir) -> Context:
    """The context that began last; an empty one where no hook has told of any, or it is damaged."""
    try:
        payload = parse_json(read_harmless(directory.context) or b"{}")
        if not isinstance(payload, dict):
            return Context()
        ident = _text(payload.get("session_id"))
        return Context(
            id=ident,
            begun=_text(payload.get("source")),
            conversation=_path(_text(payload.get("transcript_path"))),
            at=_written_at(directory.context) if ident else 0.0,
        )
    except ValueError:
        return Context()


def _written_at(path: Path) -> float:
    with contextlib.suppress(OSError):
        return path.lstat().st_mtime
    return 0.0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _path(text: str) -> Path | None:
    """The path, None where no file can have it; raises ValueError for what is no text."""
    os.fsencode(text)
    return Path(text) if text and "\0" not in text else None
