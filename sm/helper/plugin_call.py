"""Runs an action of a plugin in a process of its own, for which nobody waits."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from functools import partial

from sm.adapters import own_start
from sm.base.errors import SmError
from sm.base.plugin import Part, describe
from sm.store import events, journal, lock
from sm.store.files import ensure_private_dir
from sm.store.paths import Root, check_name

DEADLINE_S = 60
"""Time that a plugin's action may take, in seconds."""


def call_aside(root: Root, part: Part, name: str, action: Callable[[], object], what: str) -> None:
    """Call `action` of a plugin's part, unless one of the same `name` is still at work.

    `what` is what could not be done, for the journal, if it fails.

    Raises:
        SmError: there can be no process more.

    """
    if not own_start.fork_aside(partial(_call, root, part, name, action, what)):
        raise SmError("the process has more than one thread")


def _call(root: Root, part: Part, name: str, action: Callable[[], object], what: str) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(DEADLINE_S)
    try:
        folder = root.plugins / check_name(part.plugin, "plugin")
        ensure_private_dir(folder)
        with lock.try_hold(folder / f"{name}.lock") as is_ours:
            if is_ours:
                action()
    except Exception as error:
        note_failure(root, part, what, error)


def note_failure(root: Root, part: Part, what: str, error: Exception) -> None:
    """Note once in the journal what a plugin has not done."""
    text = f"plugin '{part.plugin}' {what}: {describe(error)}"
    with contextlib.suppress(SmError):
        journal.record_once(root.journal, events.Problem(text=text))
