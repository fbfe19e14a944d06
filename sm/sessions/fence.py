"""Keeps a session from acting once another attempt has its issue.

The claim on the remote says whose the issue is. It is looked at right before each act that others
can see. A look is worth a quarter of a second: a process that was frozen, or a machine that has
slept, looks again. What git itself sends is safe without that, because who takes a session over
moves its branch in the same push as its claim.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from sm.base.act_guard import OvertakenError, guard_acts
from sm.base.errors import TemporaryError
from sm.base.issue_id import IssueId, name_part, spell
from sm.sessions.session import IssueSession, Session

FRESH_S = 0.25
"""Greatest age, in seconds, of a look when the act is sent."""
LOOKS_S = (1.0, 2.0, 10.0)
"""Limits of each look, in seconds. One that takes longer may have been answered long before its
end, and another is taken; a remote that is always slow is believed at last."""


def name_claim(issue: IssueId) -> str:
    """Return the ref that claims `issue`."""
    return f"refs/sm/claims/{name_part(issue)}"


class Fence:
    """Guard of one session's acts, in one process."""

    def __init__(self, session: IssueSession) -> None:
        """Store the session; nothing is looked at yet."""
        self._session = session
        self._looked_at: _Moment | None = None
        self.said = ""
        """Reason why the session is overtaken, '' if it is not, as far as was looked."""

    def check(self) -> None:
        """Return if the claim is still that of the session's attempt.

        Raises:
            OvertakenError: it is another one's, or there is none.
            TemporaryError: the remote does not say.

        """
        if self.said:
            raise OvertakenError(self.said)
        if self._looked_at is None or self._looked_at.measure_age() > FRESH_S:
            self._look()

    def _look(self) -> None:
        for limit_s in LOOKS_S:
            began = _Moment()
            self._compare()
            if began.measure_age() <= limit_s:
                self._looked_at = _Moment()
                return
        raise TemporaryError(
            f"remote '{self._session.record.remote}' takes too long to say who has "
            f"{spell(self._session.issue)}"
        )

    def _compare(self) -> None:
        record, ref = self._session.record, name_claim(self._session.issue)
        held = self._session.project.git.ls_remote(record.remote, ref).get(ref, "")
        if held != record.claim:
            self.said = describe_overtaken(record.issue, record.attempt, held)
            raise OvertakenError(self.said)


def describe_overtaken(issue: IssueId, attempt: int, held: str) -> str:
    """Say what has become of the claim, which is the commit `held` now; '': there is none."""
    now = f"the claim is {held[:12]} now" if held else "the claim was given up"
    return f"attempt {attempt} of {spell(issue)} is overtaken: {now}"


class _Moment:
    """A moment from which an age is measured by every clock that may have gone on.

    The monotonic clock goes on while a process is stopped, the one since boot while the machine
    sleeps (clock_gettime(2)), and that of the day while a virtual machine does.
    """

    def __init__(self) -> None:
        self._at = self._read()

    @staticmethod
    def _read() -> tuple[float, float]:
        return time.clock_gettime(time.CLOCK_BOOTTIME), time.time()

    def measure_age(self) -> float:
        """Return the seconds since then; a clock of the day that was set back counts as old."""
        boot, day = (now - then for now, then in zip(self._read(), self._at, strict=True))
        return max(boot, abs(day))


@contextlib.contextmanager
def guard(session: Session | None) -> Iterator[Fence | None]:
    """Guard the session's acts within the block; yield the fence, None if nothing limits them."""
    if not isinstance(session, IssueSession) or not session.record.attempt:
        yield None
        return
    fence = Fence(session)
    with guard_acts(fence.check):
        yield fence
