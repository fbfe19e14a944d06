"""What was to begin by itself in a session that rests: the prompt hook has refused and kept it.

A client drops a prompt that is refused. So it becomes a message, which waits until the session
goes on, and is told as what it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from msgspec import DecodeError, Struct

from sm.base.decoding import decode
from sm.base.text import normalise
from sm.messages import queue
from sm.messages.queue import Message
from sm.sessions.session import Session
from sm.store import events, journal
from sm.store.files import discard, read_harmless
from sm.store.paths import SessionDir

FRAME = "[sm] This was to begin by itself while the session rested:\n\n"
LIMIT = 1 << 17
"""Bytes; the hook keeps half as many."""


class Kept(Struct, frozen=True):
    """A line of the file."""

    prompt: str


def take_up(session: Session) -> None:
    """Make messages of all that was kept; a call that was cut short is finished by the next."""
    directory = session.dir
    if not (_is_there(directory.held_back) or _is_there(directory.being_taken)):
        return
    if not _is_there(directory.being_taken):
        with contextlib.suppress(FileNotFoundError):
            directory.held_back.rename(directory.being_taken)  # the hook begins another
    for prompt in _read(directory):
        message = Message(id=_make_id(directory, prompt), text=FRAME + normalise(prompt))
        if queue.put(directory, message):
            said = "a turn that was to begin by itself is held back"
            journal.record(session.root.journal, events.Problem(session=session.name, text=said))
    discard(directory.being_taken)


def _is_there(path: Path) -> bool:
    return os.path.lexists(path)


def _read(directory: SessionDir) -> list[str]:
    found = list[str]()
    for line in read_harmless(directory.being_taken, LIMIT).splitlines():
        with contextlib.suppress(DecodeError, UnicodeDecodeError):
            found.append(decode(line, Kept).prompt)
    return found


def _make_id(directory: SessionDir, prompt: str) -> str:
    """The same for the same line of the same file."""
    at = directory.being_taken.lstat().st_mtime_ns
    return hashlib.sha256(f"{at} {prompt}".encode("utf-8", "replace")).hexdigest()[:16]
