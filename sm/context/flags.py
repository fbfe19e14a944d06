"""Flags of the monitor: what was done in a context, and the percentage that wakes it.

They are `context_flags` and `threshold` in the session's directory. The status line's hook reads
the second.
"""

from __future__ import annotations

import time

from sm.base.foreign import read_number
from sm.context.thresholds import Flags, Notice, rearm_flags
from sm.messages import queue
from sm.messages.ids import derive_id
from sm.sessions import agent_state
from sm.store.damage import read_rebuildable
from sm.store.files import discard, read_harmless, write_atomic, write_json
from sm.store.paths import SessionDir

ANY = 0
"""Threshold that lets the next reading wake the monitor, whatever it says."""


def read_flags(directory: SessionDir) -> Flags:
    """Return what was done about how full the context is; empty flags if that is lost."""
    return read_rebuildable(directory.context_flags, Flags) or Flags()


def save_flags(directory: SessionDir, value: Flags) -> None:
    """Keep what was done. The caller holds the delivery lock."""
    write_json(directory.context_flags, value)


def rearm(directory: SessionDir, at: float) -> None:
    """Begin again: the context was emptied or summed up at that moment (seconds since 1970).

    The caller holds the delivery lock.
    """
    before, present = read_flags(directory), agent_state.read(directory).context
    replace_flags(directory, before, rearm_flags(before, present, at, time.time()))


def replace_flags(directory: SessionDir, before: Flags, after: Flags) -> None:
    """Save the flags of a context that has begun, in place of the flags of the one before.

    The agent never hears a notice of `before` that still waits. The next reading wakes the monitor.
    The caller holds the delivery lock.
    """
    for notice in Notice:
        queue.withdraw(directory, make_notice_id(directory, before, notice))
    save_flags(directory, after)
    set_wake_threshold(directory, ANY)


def make_notice_id(directory: SessionDir, value: Flags, notice: Notice) -> str:
    """Make the id of that notice in this filling of the context: always the same."""
    return derive_id(f"{directory.path.name}:{value.context}:{value.reset_at:.6f}:{notice}")


def set_wake_threshold(directory: SessionDir, percentage: int | None) -> None:
    """Wake the monitor once the context reaches `percentage`; None disables it."""
    if percentage is None:
        discard(directory.threshold)
    elif read_wake_threshold(directory) != percentage:
        write_atomic(directory.threshold, f"{percentage}\n")


def read_wake_threshold(directory: SessionDir) -> int | None:
    """Return the percentage at which the status line's hook wakes the monitor; None: never."""
    return read_number(read_harmless(directory.threshold, 20).decode("ascii", "replace").strip())
