"""Whether what agents use is read: a limit that looks at old sums would let through anything.

A file beside the note of what was read (`progress.py`) says since when a session's records are read
on as they have grown. It is there for a fraction of a second each time, and stays if that fails.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from sm.adapters.agent.profile import Profile
from sm.issues.meters import BlindError
from sm.plugins.cost.folder import find_folder
from sm.plugins.cost.ledger import progress
from sm.plugins.cost.ledger.records.record import find_reader
from sm.sessions.session import Session
from sm.store.files import discard, ensure_private_dir, list_names, read_harmless, write_atomic
from sm.store.paths import Root

LATE_S = 5.0
"""Reading takes a second at most, and more on a busy machine; later than that, it fails."""
OTHERS_S = 15.0
"""After so many seconds the lag also holds other sessions that share a limit."""
SUFFIX = ".behind"
FAULTS = {
    progress.Fault.MISSING: "the record of its conversation is gone",
    progress.Fault.SILENT: "it is at work, and nothing is added to its record",
}


def check_sight(session: Session, *, allows_unknown: bool) -> None:
    """Check that it is known what the session uses just now.

    Raises:
        BlindError: it is not known.
        StateError: it cannot be noted that it is known again.

    """
    if unread := tell_unread(session.profile):
        if not allows_unknown:
            raise BlindError(unread, 0.0)
        return
    if not allows_unknown and (fault := progress.find_fault(session)):
        raise BlindError(f"what {session.address} uses is not known: {FAULTS[fault]}", 0.0)
    now = time.time()
    if (late_s := measure_lag(session, now)) >= LATE_S:
        raise BlindError(_tell(session.address, late_s), now - late_s)


def tell_unread(profile: Profile) -> str:
    """Why nobody ever knows what an agent CLI uses, '' if its records can be read."""
    if find_reader(profile.spending):
        return ""
    return f"what '{profile.name}' uses is in no record that can be read"


def note_reading(session: Session, now: float) -> None:
    """Note that what the records have more is about to be read, unless that was noted before."""
    mark = find_mark(session)
    since = _read_time(mark)
    if since is None or since > now:  # the clock was set back
        # The first session of a state root is looked at before it is read.
        ensure_private_dir(mark.parent)
        write_atomic(mark, f"{now:.6f}\n")


def measure_lag(session: Session, now: float) -> float:
    """For how long the session's records have been read in vain, in seconds."""
    mark = find_mark(session)
    if not os.path.lexists(mark):
        return 0.0
    if not progress.has_grown(session):
        discard(mark)
        return 0.0
    # Records that grow all the time always have more; what was read up to then is noted.
    since = max(_read_time(mark) or now, progress.find_read_at(session))
    return max(0.0, now - since)


def find_mark(session: Session) -> Path:
    """Where it says since when."""
    return progress.find_note(session).with_suffix(SUFFIX)


def find_others(root: Root, but_for: str) -> str:
    """Why nobody knows what some other session uses, '' if all is known."""
    return next((_tell(name, late_s) for name, late_s in list_lags(root) if name != but_for), "")


def list_lags(root: Root) -> Iterator[tuple[str, float]]:
    """The sessions whose records are read too late, and for how many seconds they were not."""
    now, folder = time.time(), find_folder(root)
    for name in _list_stems(root, SUFFIX):
        since = _read_time(folder / f"{name}{SUFFIX}")
        if since is None or 0 <= now - since < OTHERS_S:
            continue
        if root.session(name).identity.exists():
            yield name, max(OTHERS_S, now - since)


def count_followed(root: Root) -> int:
    """How many sessions are read."""
    return len(_list_stems(root, ".read"))


def _list_stems(root: Root, suffix: str) -> list[str]:
    names = list_names(find_folder(root))
    return [name.removesuffix(suffix) for name in names if name.endswith(suffix)]


def ask_anew(session: Session) -> None:
    """Have the session followed once more by its next pass, though it has not grown."""
    discard(progress.find_note(session))


def _tell(name: str, late_s: float) -> str:
    return f"what {name} uses was not read for {late_s:.0f} s"


def _read_time(mark: Path) -> float | None:
    try:
        return float(read_harmless(mark, 40))
    except ValueError:
        return None
