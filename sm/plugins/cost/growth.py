"""How much an agent has written in its records, and how much of that was read.

It is loaded with the passes, so it knows nothing of databases and prices.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sm.adapters.agent.spending import Reader, find_reader
from sm.plugins.cost.folder import find_folder
from sm.sessions import window
from sm.sessions.session import Session
from sm.store.files import read_harmless, write_atomic
from sm.store.paths import Root

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
    return find_folder(session.root) / f"{session.name}.read"


def has_grown(session: Session) -> bool:
    """Whether the records of the present conversation have grown since they were read last.

    A session that has just ended is also to be seen to.
    """
    reader = find_reader(session.profile.spending)
    present = window.read(session.dir)
    if reader is None:
        return False
    if present.conversation is None:
        return is_left(session)
    return read_size(session) != measure(reader, present.conversation, present.id)


def is_left(session: Session) -> bool:
    """Whether the session is gone, and was not seen to since."""
    return find_note(session).exists() and not session.dir.path.exists()


def list_notes_of_gone(root: Root) -> Iterator[Path]:
    """The notes of sessions that are gone."""
    for note in find_folder(root).glob("*.read"):
        if not root.session(note.stem).path.exists():
            yield note
