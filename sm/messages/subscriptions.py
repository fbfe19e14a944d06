"""Subscriptions to the end of an agent's turn: a file for each message, gone once it is told.

A message belongs to the turn that runs at its receipt, so a turn that ended earlier says nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from msgspec import Struct

from sm.messages import queue
from sm.store.files import create_exclusive, discard, ensure_private_dir, list_names, read_harmless
from sm.store.paths import NAME, SessionDir

LOST_S = 60.0
"""Time after which a message that is in no queue is not about to be put there, in seconds."""


class Waiter(Struct, frozen=True):
    """`session` is told when the turn ends in which the agent got message `ident`.

    `accepted_at` is when it got it, seconds since 1970; None: it waits still.
    """

    ident: str
    session: str
    accepted_at: float | None


def add(directory: SessionDir, ident: str, session: str) -> None:
    """Subscribe `session`; to be called before the message is queued, so that none is missed.

    Raises:
        StateError: it cannot be noted; also where the session of `directory` is gone.

    """
    ensure_private_dir(directory.notify, parents=False)
    create_exclusive(directory.notify / ident, f"{session}\n")


def remove(directory: SessionDir, ident: str) -> None:
    """End the subscription: its waiter has been told, or there is nothing to tell."""
    discard(directory.notify / ident)


def list_waiters(directory: SessionDir) -> Iterator[Waiter]:
    """Yield everybody who waits; a waiter whose message is lost is cleared."""
    for ident in list_names(directory.notify):
        if waiter := _waiter(directory, ident):
            yield waiter


def _waiter(directory: SessionDir, ident: str) -> Waiter | None:
    path = directory.notify / ident
    who = read_harmless(path).decode("utf-8", "replace").strip()
    at = queue.find_accepted_at(directory, ident)
    if at is None and queue.find_place(directory, ident) is None:
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - LOST_S:
                remove(directory, ident)
        return None
    return Waiter(ident, who, at) if NAME.fullmatch(who) else None
