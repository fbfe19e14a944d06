"""Whether what agents use is read: a limit that looks at old sums would let through anything.

A file beside the note of what was read (`growth.py`) says since when a session's records have more
than that. It is there for a fraction of a second each time they grow, and stays if reading fails.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from sm.adapters.agent.profile import Profile
from sm.adapters.agent.spending import find_reader
from sm.plugins.cost import growth
from sm.plugins.cost.folder import find_folder
from sm.sessions.session import Session
from sm.store.files import discard, ensure_private_dir, list_names, read_harmless, write_atomic
from sm.store.paths import Root

LATE_S = 15.0
"""Reading takes a second at most; later than that, it fails."""
SUFFIX = ".behind"
FAULTS = {
    growth.Fault.MISSING: "the record of its conversation is gone",
    growth.Fault.SILENT: "it is at work, and nothing is added to its record",
}


def find_blindness(session: Session, *, allows_unknown: bool) -> str:
    """Why nobody knows what the session uses just now, '' if it is known.

    Raises:
        StateError: it cannot be noted since when.

    """
    if unread := tell_unread(session.profile):
        return "" if allows_unknown else unread
    if not allows_unknown and (fault := growth.find_fault(session)):
        return f"what {session.address} uses is not known: {FAULTS[fault]}"
    return _tell(session.address, note_lag(session, time.time()))


def tell_unread(profile: Profile) -> str:
    """Why nobody ever knows what an agent CLI uses, '' if its records can be read."""
    if find_reader(profile.spending):
        return ""
    return f"what '{profile.name}' uses is in no record that can be read"


def note_lag(session: Session, now: float) -> float:
    """For how long the session's records have had more than was read, in seconds."""
    mark = find_mark(session)
    if not growth.has_grown(session):
        if os.path.lexists(mark):
            discard(mark)
        return 0.0
    since = _read_time(mark)
    if since is None or since > now:  # the clock was set back
        # The first session of a state root is looked at before it is read.
        ensure_private_dir(mark.parent)
        write_atomic(mark, f"{now:.6f}\n")
        return 0.0
    return now - since


def find_mark(session: Session) -> Path:
    """Where it says since when."""
    return growth.find_note(session).with_suffix(SUFFIX)


def find_others(root: Root, but_for: str) -> str:
    """Why nobody knows what some other session uses, '' if all is known."""
    return next((_tell(name, lag) for name, lag in list_lags(root) if name != but_for), "")


def list_lags(root: Root) -> Iterator[tuple[str, float]]:
    """The sessions whose records are read too late, and for how many seconds they were not."""
    now, folder = time.time(), find_folder(root)
    for name in _list_stems(root, SUFFIX):
        since = _read_time(folder / f"{name}{SUFFIX}")
        if since is None or 0 <= now - since < LATE_S:
            continue
        if root.session(name).identity.exists():
            yield name, max(LATE_S, now - since)


def count_followed(root: Root) -> int:
    """How many sessions are read."""
    return len(_list_stems(root, ".read"))


def _list_stems(root: Root, suffix: str) -> list[str]:
    names = list_names(find_folder(root))
    return [name.removesuffix(suffix) for name in names if name.endswith(suffix)]


def ask_anew(session: Session) -> None:
    """Have the session followed once more by its next pass, though it has not grown."""
    discard(growth.find_note(session))


def _tell(name: str, lag: float) -> str:
    return f"what {name} uses was not read for {lag:.0f} s" if lag >= LATE_S else ""


def _read_time(mark: Path) -> float | None:
    try:
        return float(read_harmless(mark, 40))
    except ValueError:
        return None
