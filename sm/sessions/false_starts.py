"""Starts of agents that have ended at once. Where several have ended alike, it is the machine.

A client that is just being replaced, or lacks a library, ends in each session before it has done
anything, and none of their issues has caused that. There is a file for each session whose last
start has ended so.
"""

from __future__ import annotations

import re

from msgspec import Struct, structs

from sm.base.errors import StateError
from sm.store.files import (
    decode_json,
    discard,
    ensure_private_dir,
    list_names,
    read_guarded,
    write_json,
)
from sm.store.paths import Root

AT_ONCE_S = 30.0
"""An agent that was gone so soon after its start, and has called no hook, has never worked."""
WINDOW_S = 900.0
"""So long a false start counts: another try is made several times within it."""
PAUSE_S = 300.0
"""The longest pause before another try."""
RESUMED = 5
"""So often the conversation is tried to be resumed; it may be that which the client cannot do."""
VARYING = re.compile(r"[0-9a-f]{6,}|[0-9]+")
"""What differs in the same words of two processes: numbers, times, ids."""


class FalseStart(Struct, frozen=True):
    """A start at `at` (seconds since 1970) that has ended at once, with the agent's last words.

    `tries` counts those of the session that have ended so, one after another. `resume` is the
    agent's own session that it was to resume, '' for none.
    """

    at: float
    reason: str
    tries: int = 1
    resume: str = ""

    @property
    def kind(self) -> str:
        """What it has in common with others that have ended for the same reason."""
        return VARYING.sub("#", self.reason)

    @property
    def resumable(self) -> str:
        """What the next start is to resume, '' for nothing."""
        return self.resume if self.tries < RESUMED else ""

    def find_next(self, pause_s: float) -> float:
        """When the next try is due: each pause is twice as long as the one before."""
        return self.at + min(pause_s * 2.0 ** (self.tries - 1), PAUSE_S)


class Fault(Struct, frozen=True):
    """Why agents end as they start, by the last words of one of them, and in which sessions."""

    reason: str
    sessions: tuple[str, ...]


def note(root: Root, session: str, start: FalseStart) -> None:
    """Note that the session's last start has ended at once, after those noted before."""
    before = read(root, session)
    tries = before.tries + 1 if before else 1
    ensure_private_dir(root.false_starts)
    write_json(root.false_starts / session, structs.replace(start, tries=tries))


def clear(root: Root, session: str) -> None:
    """The session's agent works, or the session is over."""
    discard(root.false_starts / session)


def read(root: Root, session: str) -> FalseStart | None:
    """Return the session's last start, if it has ended at once."""
    path = root.false_starts / session
    try:
        data = read_guarded(path)
        return decode_json(data, FalseStart, path) if data else None
    except StateError:
        return None  # it is written anew


def find_fault(root: Root, now: float) -> Fault | None:
    """Return why agents end as they start, if several sessions say the same; else None."""
    alike: dict[str, dict[str, FalseStart]] = {}
    for name in list_names(root.false_starts):
        one = read(root, name)
        if one and 0 <= now - one.at < WINDOW_S:
            alike.setdefault(one.kind, {})[name] = one
    found = max(alike.values(), key=len, default={})
    if len(found) < 2:
        return None
    return Fault(next(iter(found.values())).reason, tuple(sorted(found)))


def find_of_machine(root: Root, session: str, now: float) -> FalseStart | None:
    """Return the session's false start, if others have ended alike: its issue has not caused it."""
    one = read(root, session)
    if one is None:
        return None
    fault = find_fault(root, now)
    return one if fault and session in fault.sessions else None
