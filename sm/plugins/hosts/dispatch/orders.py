"""Claims and begins issues on all hosts side by side, and on each host one after another.

To begin one takes a node a second or more: a worktree, some requests to the forge, a terminal. A
host gets the next issue when it has begun the last one, so each machine begins one at a time. A
host that refuses, or does not answer, is not asked for more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sm.adapters.forge.model import Issue
from sm.base.clock import Deadline
from sm.base.errors import TemporaryError
from sm.issues.runners import NoAnswerError, NodeRefusedError, Placement
from sm.sessions.project import Project

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

HOLD_S = 60.0
"""Seconds of a tick for beginning sessions: a tick is for all projects."""
CLAIMS_AT_ONCE = 12
"""Issues that are claimed side by side. GitHub takes a hundred requests at once (docs.github.com,
"Rate limits for the REST API"), and would rather have one ("Best practices"). A claim has two short
ones, and one after another a thousand would take half an hour."""

Host = tuple[str, str]
"""Runner, and one of its hosts."""


class StartOrder:
    """Session that is to begin on a host; its issue is claimed first, if it has no placement."""

    def __init__(
        self, host: Host, *, issue: Issue | None = None, placement: Placement | None = None
    ):
        """Begin without an outcome. An issue has a `placement` once it is claimed."""
        self.host, self.issue, self.placement = host, issue, placement
        self.outcome: Future[Placement | None]


Begin = Callable[[Project, StartOrder], Placement | None]
"""Function that begins a session and returns its new placement; None if it was not claimed."""


class Dispatch:
    """Sessions that a tick has begun."""

    def __init__(self, project: Project) -> None:
        """Begin with none."""
        self._project = project
        self._queues: dict[Host, tuple[ThreadPoolExecutor, Project]] = {}
        self._vain: dict[Host, NoAnswerError | NodeRefusedError] = {}
        self._orders: list[StartOrder] = []
        self._deadline = Deadline(HOLD_S)
        self.claiming = threading.BoundedSemaphore(CLAIMS_AT_ONCE)

    def order(self, order: StartOrder, begin: Begin) -> None:
        """Order a session; it begins after those of its host that were ordered before."""
        from concurrent.futures import ThreadPoolExecutor  # for few ticks

        if order.host not in self._queues:
            # A project's open objects, such as its forge, are for one thread.
            own = Project(self._project.config, self._project.settings)
            self._queues[order.host] = ThreadPoolExecutor(1), own
        queue, own = self._queues[order.host]
        order.outcome = queue.submit(self._begin, own, order, begin)
        self._orders.append(order)

    def _begin(self, project: Project, order: StartOrder, begin: Begin) -> Placement | None:
        why: TemporaryError | NodeRefusedError | None = self._vain.get(order.host)
        if why is None and self._deadline.is_over:
            why = TemporaryError("it is begun at the next tick: this one has begun others so long")
        if why and order.placement:
            raise why
        if why:  # the issue stays unclaimed, so that another host may have it
            return None
        try:
            return begin(project, order)
        except NoAnswerError as error:
            self._vain[order.host] = error
            raise
        except NodeRefusedError as error:
            if error.of_host:
                self._vain[order.host] = error
            raise

    def has_in_vain(self, runner: str, host: str) -> bool:
        """Whether the host has been asked in vain."""
        return (runner, host) in self._vain

    def take_done(self) -> Iterator[StartOrder]:
        """Yield the orders that have an outcome by now."""
        for one in [order for order in self._orders if order.outcome.done()]:
            self._orders.remove(one)
            yield one

    def take_all(self) -> Iterator[StartOrder]:
        """Yield all orders, each when it has an outcome."""
        from concurrent.futures import FIRST_COMPLETED, wait

        while self._orders:
            wait([one.outcome for one in self._orders], return_when=FIRST_COMPLETED)
            yield from self.take_done()
        for queue, _ in self._queues.values():
            queue.shutdown()
        self._queues.clear()
