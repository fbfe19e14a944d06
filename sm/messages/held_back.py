"""Turns that would have begun by themselves in a resting session, and that the hook refused.

A client drops a refused prompt. So the hook keeps it, and here it becomes a message, which waits
until the session goes on.
"""

from __future__ import annotations

import contextlib
import os

from msgspec import DecodeError, Struct

from sm.base.decoding import decode
from sm.base.text import normalise
from sm.messages import queue
from sm.messages.ids import derive_id
from sm.messages.queue import Message
from sm.sessions.session import Session
from sm.store import events, journal
from sm.store.files import discard, read_harmless
from sm.store.paths import SessionDir

FRAME = "[sm] This was to begin by itself while the session rested:\n\n"
LIMIT = 1 << 17
"""Limit of the file, in bytes; the hook keeps half as many."""


class HeldMessage(Struct, frozen=True):
    """A line of the file."""

    prompt: str


def take_up(session: Session) -> None:
    """Make messages of all that was kept; a call that was cut short is finished by the next."""
    directory = session.dir
    if not os.path.lexists(directory.being_taken):
        if not os.path.lexists(directory.held_back):
            return
        directory.held_back.rename(directory.being_taken)  # the hook begins another
    at = directory.being_taken.lstat().st_mtime_ns
    for prompt in _read(directory):
        message = Message(id=derive_id(f"{at} {prompt}"), text=FRAME + normalise(prompt))
        if queue.put(directory, message):
            said = "a turn that was to begin by itself is held back"
            journal.record(session.root.journal, events.Problem(session=session.name, text=said))
    discard(directory.being_taken)


def _read(directory: SessionDir) -> list[str]:
    found = list[str]()
    for line in read_harmless(directory.being_taken, LIMIT).splitlines():
        with contextlib.suppress(DecodeError, UnicodeDecodeError):
            found.append(decode(line, HeldMessage).prompt)
    return found
