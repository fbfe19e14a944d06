"""Looks in each pass whether the records of a session's agent have grown.

It is loaded with the passes, so it knows nothing of databases and prices.
"""

from __future__ import annotations

import os
from pathlib import Path

from sm.adapters.agent.spending import Reader, find_reader
from sm.sessions import window
from sm.sessions.followers import Follower
from sm.sessions.session import Session
from sm.store.files import read_harmless, write_atomic


def wants(session: Session) -> bool:
    """Whether the records of the present conversation have grown since they were read last."""
    reader = find_reader(session.profile.spending)
    present = window.read(session.dir)
    if reader is None or present.conversation is None:
        return False
    return _read_size(session) != measure(reader, present.conversation, present.id)


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


def _read_size(session: Session) -> str:
    return read_harmless(find_note(session), 400).decode("utf-8", "replace").strip()


def find_note(session: Session) -> Path:
    """Where that is noted, also once the session is gone."""
    return session.root.plugins / "cost" / f"{session.name}.read"


def _follow(session: Session) -> None:
    """Enter them. It is in a process of its own, which alone loads what that takes."""
    from sm.plugins.cost.entering import follow

    os.nice(10)  # agents and passes come first
    follow(session)


FOLLOWER = Follower(_follow, wants)
