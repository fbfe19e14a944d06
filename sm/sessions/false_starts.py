"""Starts of agents that have ended at once. Where several have ended alike, it is the machine.

So it is where there was no program to run. A client that is just being replaced, or lacks a
library, ends in each session before it has done anything, and none of their issues has caused that.
There is a file for each session whose last start has ended so.
"""

from __future__ import annotations

from msgspec import structs

from sm.sessions.false_start import FalseStart, StartFault, judge
from sm.store.damage import read_rebuildable
from sm.store.files import discard, ensure_private_dir, list_names, write_json
from sm.store.paths import Root


def note(root: Root, session: str, start: FalseStart) -> None:
    """Note that the session's last start has ended at once, after those noted before."""
    before = read(root, session)
    tries = before.tries + 1 if before else 1
    ensure_private_dir(root.false_starts)
    write_json(root.false_starts / session, structs.replace(start, tries=tries))


def clear(root: Root, session: str) -> None:
    """Forget the last false start: the session's agent works, or the session is over."""
    discard(root.false_starts / session)


def read(root: Root, session: str) -> FalseStart | None:
    """Return the session's last start, if it has ended at once."""
    return read_rebuildable(root.false_starts / session, FalseStart)


def list_faults(root: Root, now: float) -> list[StartFault]:
    """List why agents end as they start here, what concerns most sessions first."""
    found = {name: read(root, name) for name in list_names(root.false_starts)}
    return judge({name: one for name, one in found.items() if one}, now)


def find_of_machine(root: Root, session: str, now: float) -> FalseStart | None:
    """Return the session's false start, if it is the machine's: its issue has not caused it."""
    one = read(root, session)
    if one is None:
        return None
    return one if any(session in fault.sessions for fault in list_faults(root, now)) else None
