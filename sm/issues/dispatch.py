"""Has sessions begun on their hosts: hosts side by side, those of one host one after another.

A begin takes a node a second or more: a worktree, some requests to the forge, a terminal. The forge
is asked by one machine for one thing after another, so a host gets the next when it has begun the
last. One that refuses, or does not answer, is not asked for more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sm.base.clock import Deadline
from sm.base.errors import TemporaryError
from sm.issues.runners import NoAnswerError, Placement, RefusedError
from sm.sessions.project import Project

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

HOLD_S = 60.0
"""Seconds of a tick for beginning sessions: a tick is for all projects."""

Begin = Callable[[Project, Placement], Placement]
"""Has a session begun, and returns its placement as it is then."""
Host = tuple[str, str]
"""A runner, and one of its hosts."""


class Order:
    """A session that is being begun, and what becomes of it."""

    def __init__(self, placement: Placement, outcome: Future[Placement]) -> None:
        """It was just ordered."""
        self.placement, self.outcome = placement, outcome


class Dispatch:
    """The sessions that a tick has begun."""

    def __init__(self, project: Project) -> None:
        """None is yet."""
        self._project = project
        self._queues: dict[Host, ThreadPoolExecutor] = {}
        self._vain: dict[Host, NoAnswerError | RefusedError] = {}
        self._orders: list[Order] = []
        self._deadline = Deadline(HOLD_S)

    def order(self, placement: Placement, begin: Begin) -> None:
        """Have a session begun, after those of its host that were ordered before."""
        from concurrent.futures import ThreadPoolExecutor  # for few ticks

        host = (placement.runner, placement.host)
        if host not in self._queues:
            self._queues[host] = ThreadPoolExecutor(1)
        future = self._queues[host].submit(self._begin, host, placement, begin)
        self._orders.append(Order(placement, future))

    def _begin(self, host: Host, placement: Placement, begin: Begin) -> Placement:
        if why := self._vain.get(host):
            raise why
        if self._deadline.is_over:
            raise TemporaryError("it is begun at the next tick: this one has begun others so long")
        # What a project has opened, such as its forge, is for one thread.
        own = Project(self._project.config, self._project.settings)
        try:
            return begin(own, placement)
        except NoAnswerError as error:
            self._vain[host] = error
            raise
        except RefusedError as error:
            if error.of_host:
                self._vain[host] = error
            raise

    def has_in_vain(self, runner: str, host: str) -> bool:
        """Whether the host was asked in vain by now."""
        return (runner, host) in self._vain

    def take_done(self) -> Iterator[Order]:
        """Yield those whose outcome is there by now."""
        for one in [order for order in self._orders if order.outcome.done()]:
            self._orders.remove(one)
            yield one

    def take_all(self) -> Iterator[Order]:
        """Yield all, each when its outcome is there."""
        from concurrent.futures import FIRST_COMPLETED, wait

        while self._orders:
            wait([one.outcome for one in self._orders], return_when=FIRST_COMPLETED)
            yield from self.take_done()
        for queue in self._queues.values():
            queue.shutdown()
        self._queues.clear()
