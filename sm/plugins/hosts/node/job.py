"""Runs the session of an attempt in the foreground, as the job of a cluster: it lives as long.

It begins the session, keeps it alive, and ends when that is over. Told that its time is short, it
has the agent write a handoff document, pushes the work with it and ends the session, which then
goes on in another job.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator

from msgspec import Struct

from sm.base.act_guard import OvertakenError
from sm.base.clock import Deadline
from sm.base.errors import SmError, TemporaryError
from sm.base.issue_id import IssueId
from sm.issues.start import SettledError, TakenError, end_attempt
from sm.issues.work import wip
from sm.plugins.hosts.node.attempts import begin, keeping_alive
from sm.plugins.hosts.node.departure import Leaving, keep_document
from sm.sessions import fence, monitors, registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import lock

BEGIN_S, AGAIN_S = 300.0, 5.0
"""Longest time and interval of attempts to begin a session while something is in the way."""
LOOK_S = 0.5
PUSH_S = 60.0
"""Part of the notice that is kept for the push of the work, in seconds."""
END_S = 10.0
OVER = "over"
SOON = signal.SIGUSR1
NOW = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class JobOrder(Struct, frozen=True):
    """Attempt at an issue that is to run, by its claim, and the `rules` by which it is merged.

    `notice_s`: so long before the job is ended it is told.
    """

    issue: IssueId
    attempt: int
    claim: str
    notice_s: float
    rules: str = ""


class EndNotice:
    """Notice that the job gets by signals: to end soon, or now."""

    def __init__(self) -> None:
        """Begin without a signal."""
        self.soon = self.now = False

    def hear(self, number: int, _: object) -> None:
        """Note a signal."""
        self.soon |= number == SOON
        self.now |= number in NOW

    @property
    def to_end(self) -> bool:
        """Whether it was told either."""
        return self.soon or self.now


@contextlib.contextmanager
def listening() -> Iterator[EndNotice]:
    """Have signals say when to end."""
    told = EndNotice()
    before = {number: signal.signal(number, told.hear) for number in (SOON, *NOW)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(project: Project, order: JobOrder, told: EndNotice) -> str:
    """Have the session run to its end, or to that of the job; return what became of it.

    Raises:
        SmError: it could not begin.

    """
    with keeping_alive(project) as keep_alive:
        try:
            name = _begin(project, order, told)
        except (TakenError, SettledError) as error:
            return error.message
        if not name:
            return "ended before it could begin"
        while session := _find(project, name, order.attempt):
            if told.to_end:
                return _hand_over(session, order, told)
            keep_alive()
            _sleep(lambda: told.to_end, LOOK_S)
        return OVER


def _begin(project: Project, order: JobOrder, told: EndNotice) -> str:
    """Return the session's name; '' if the job is to end before that."""
    deadline = Deadline(BEGIN_S)
    while not told.to_end:
        try:
            return begin(project, order.issue, order.attempt, order.claim, order.rules)
        except (TakenError, SettledError):
            raise
        except TemporaryError:
            if deadline.is_over:
                raise
        _sleep(lambda: told.to_end, AGAIN_S)
    return ""


def _find(project: Project, name: str, attempt: int) -> IssueSession | None:
    found = registry.find(project.root, name)
    if isinstance(found, IssueSession) and found.attempt == attempt:
        return found.provide(project=project)
    return None


def _hand_over(session: IssueSession, order: JobOrder, told: EndNotice) -> str:
    """Push the work, with the agent's document if there is time for one, and end the session."""
    if told.soon:
        patience_s = max(order.notice_s / 2, order.notice_s - PUSH_S)
        leaving = Leaving(session)
        _sleep(lambda: told.now or _is_gone(session) or leaving.is_done(), patience_s)
    with lock.hold(session.dir.lock, timeout_s=END_S):
        if _is_gone(session):
            return OVER
        document = keep_document(session)
        said = _push(session)
        kept = end_attempt(session, f"the job of attempt {order.attempt} ends")
    _sleep(lambda: not monitors.is_watched(session), END_S)
    said = f"{said}, with a handoff document" if document else said
    return f"{said}; kept here: {kept}" if kept else said


def _is_gone(session: IssueSession) -> bool:
    """Whether it has ended by itself meanwhile."""
    return not session.dir.identity.exists()


def _push(session: IssueSession) -> str:
    try:
        with fence.guard(session):
            wip.save(session)
    except OvertakenError as error:
        return error.message
    except SmError as error:
        return f"its work could not be pushed: {error.message}"
    return "handed over"


def _sleep(is_enough: Callable[[], bool], at_most_s: float) -> None:
    deadline = Deadline(at_most_s)
    while not is_enough() and not deadline.is_over:
        time.sleep(min(LOOK_S, max(0.0, deadline.left_s)))
