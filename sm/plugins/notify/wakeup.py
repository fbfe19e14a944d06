"""Sees to it that a notifier runs when there is something to send."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sm.base.clock import is_ahead
from sm.base.errors import StateError
from sm.plugins.notify.outbox import Post
from sm.store.fifo import WakeUp, wake_reader
from sm.store.files import ensure_private_dir

if TYPE_CHECKING:
    from sm.helper.process import Helper

RESTART_S = 30.0
"""Time in which a started notifier says what is due next, in seconds; else it has died."""
LONGEST_S = 86400.0
"""Longest time that anything is put off, in seconds: quiet hours end within a day."""


def wake(post: Post, variables: Iterable[str] = ()) -> None:
    """Have what was put just now looked at: wake the notifier, or start one.

    It gets these variables of our environment.

    Raises:
        SmError: it cannot be started. A later pass tries that again.

    """
    if not poke(post) and not _is_starting(post):
        _start(post, variables)


def ensure_sent(post: Post, variables: Iterable[str] = ()) -> None:
    """Start a notifier if something is due and none is at work. Mostly one look at one file.

    Raises:
        SmError: it cannot be started.

    """
    due = post.read_due()
    # What is due later than that was written before the clock was set back.
    if due is not None and not is_ahead(due, LONGEST_S) and not poke(post):
        _start(post, variables)


def poke(post: Post) -> bool:
    """Wake the notifier; say whether there is one. Nothing is waited for."""
    return wake_reader(post.wake) in (WakeUp.HEARD, WakeUp.FULL)


def _is_starting(post: Post) -> bool:
    """Whether somebody has started one just now: it looks at all outboxes once it can be woken."""
    due = post.read_due()
    return due is not None and is_ahead(due, RESTART_S)


def _start(post: Post, variables: Iterable[str]) -> None:
    ensure_private_dir(post.path)
    with contextlib.suppress(StateError):  # one start at a time
        post.set_due(time.time() + RESTART_S)
    make_helper(post, variables).start()


def make_helper(post: Post, variables: Iterable[str] = ()) -> Helper:
    """Return the notifier of a state root as a process."""
    from sm.helper.process import Helper  # mostly it only has to be woken

    return Helper(("notifier", str(post.root.path)), post.lock, post.log, tuple(variables))
