"""The notifier: the one process of a state root that sends what waits in the outboxes.

Each channel has a thread of its own while it sends, so one that is slow delays no other. What is
sent when, `rules.py` decides.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import threading
import time
from collections.abc import Iterable

from sm.base.clock import Deadline
from sm.base.errors import SmError, StateError
from sm.plugins.notify import delivery
from sm.plugins.notify.delivery import Courier
from sm.plugins.notify.outbox import Outbox, Post
from sm.plugins.notify.wakeup import make_helper
from sm.store.failpoint import crash_point
from sm.store.fifo import listen_anew
from sm.store.files import ensure_private_dir

SOON_S = 60.0
"""Seconds within which something due keeps the process alive; another one sends the rest."""
REST_S = 5.0
"""Time that it stays after the last message, in seconds: the next one is there sooner."""
LOOK_S = 0.2
"""Seconds between looks, however often it is woken: in a burst each reads many files."""
TAKE_S = 2.0
"""Time that an earlier notifier may take to end, in seconds."""


class Notifier:
    """The outboxes of a state root, and who is at work on them."""

    def __init__(self, post: Post, wake: int) -> None:
        """Nobody is at work. `wake` has something to read when there may be something to do."""
        self._post, self._wake = post, wake
        self._couriers: dict[Outbox, Courier] = {}
        self._rest = Deadline(REST_S)

    def run(self) -> None:
        """Send what is due, until nothing is due soon."""
        for outbox in self._post.list_all():
            with contextlib.suppress(SmError):
                delivery.take_back(outbox, time.time())
        while True:
            next_at = self._look()
            # If this process dies, the first pass after that starts another one.
            _set_due(self._post, min(next_at, time.time() + SOON_S))
            if self._is_done(next_at):
                return
            self._await(next_at)

    def _look(self) -> float:
        """Begin what is due in each outbox; return when something is due next."""
        next_at = math.inf
        for outbox in self._post.list_all():
            courier = self._couriers.get(outbox)
            if courier and courier.is_at_work:
                next_at = min(next_at, time.time() + SOON_S)
                continue
            self._couriers.pop(outbox, None)
            try:
                due = delivery.find_due(outbox, time.time())
            except SmError:  # its files cannot be used: the next look may find them mended
                continue
            next_at = min(next_at, due.next_at)
            if due.letters:
                self._couriers[outbox] = Courier(outbox, due, self._tell)
                self._couriers[outbox].start()
                self._rest = Deadline(REST_S)
                next_at = min(next_at, time.time() + SOON_S)
        return next_at

    def _is_done(self, next_at: float) -> bool:
        at_work = [one for one in self._couriers.values() if one.is_at_work]
        if at_work:
            if all(one.is_stuck for one in at_work):
                os._exit(1)  # the next notifier finds what was begun, and says so
            return False
        if not self._post.wake.exists():  # the state root was taken away
            return True
        return self._rest.is_over and next_at > time.time() + SOON_S

    def _await(self, next_at: float) -> None:
        """Wait until there may be something to do."""
        threading.Event().wait(LOOK_S)
        left = max(0.0, min(next_at - time.time(), SOON_S))
        if not any(one.is_at_work for one in self._couriers.values()):
            left = min(left, max(self._rest.left_s, 0.05))
        if select.select([self._wake], [], [], left)[0]:
            with contextlib.suppress(BlockingIOError):
                while len(os.read(self._wake, 4096)) == 4096:
                    pass

    def _tell(self) -> None:
        """Have us look: a courier is done."""
        with contextlib.suppress(OSError):
            os.write(self._wake, b"\n")


def run(post: Post) -> None:
    """Be the notifier of a state root, unless there is one.

    Raises:
        StateError: its files cannot be used.

    """
    ensure_private_dir(post.path)
    os.chdir("/")  # or no folder that we were started in could be unmounted
    with make_helper(post).take_place(TAKE_S) as is_ours:
        if is_ours:
            _serve(post)


def _serve(post: Post) -> None:
    """Send until nothing is due soon. Who puts something meanwhile finds us, or starts another.

    What was put just before the FIFO was closed, nobody else would see to: so a last look is after
    that.
    """
    while True:
        wake = listen_anew(post.wake)
        # It has started, so it is no longer waited for: who finds it dead starts another at once.
        _set_due(post, time.time() + SOON_S)
        crash_point("notify:listening")
        try:
            Notifier(post, wake).run()
        finally:
            os.close(wake)
            with contextlib.suppress(OSError):
                post.wake.unlink()
        next_at = _find_next(post.list_all())
        _set_due(post, next_at)
        if next_at > time.time() + SOON_S:
            return


def _find_next(outboxes: Iterable[Outbox]) -> float:
    next_at = math.inf
    for outbox in outboxes:
        with contextlib.suppress(SmError):
            due = delivery.find_due(outbox, time.time())
            next_at = min(next_at, time.time() if due.letters else due.next_at)
    return next_at


def _set_due(post: Post, at: float) -> None:
    with contextlib.suppress(StateError, OSError):
        post.set_due(None if at == math.inf else at)
