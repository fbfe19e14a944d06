"""How much an agent has written in its records, and how much of that was read."""

from __future__ import annotations

from pathlib import Path

from sm.adapters.agent.spending import Reader
from sm.sessions.session import Session
from sm.store.files import read_harmless, write_atomic

SLACK_S = 60.0
"""A session's first request may seem to be so much older than its record."""


def find_beginning(session: Session) -> float:
    """What was asked for earlier (seconds since 1970) is not the session's."""
    return session.record.created_at - SLACK_S


def measure(reader: Reader, conversation: Path, ident: str) -> str:
    """How much a conversation has written, in all of its files."""
    sizes = (find_size(path) or 0 for path in reader.list_files(conversation, ident))
    return f"{ident} {sum(sizes)}"


def find_size(path: Path) -> int | None:
    """Bytes of a file, None if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def note_size(session: Session, size: str) -> None:
    """Note how much had been written when it was read."""
    write_atomic(find_note(session), f"{size}\n")


def read_size(session: Session) -> str:
    """Return what was noted."""
    return read_harmless(find_note(session), 400).decode("utf-8", "replace").strip()


def find_note(session: Session) -> Path:
    """Where that is noted, also once the session is gone."""
    return session.root.plugins / "cost" / f"{session.name}.read"
