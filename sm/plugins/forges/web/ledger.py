"""The quota ledger: every request of a project, by hour, session and purpose, and what is left.

All processes of a project write into one small file, under its lock. It is made anew from nothing
if it is lost: then only the counts are gone.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, structs

from sm.adapters.forge.spender import SPENDER
from sm.base.errors import SmError
from sm.plugins.forges.web.limits import RateLimit
from sm.store import lock
from sm.store.damage import read_rebuildable
from sm.store.files import write_json

HOUR_S = 3600
KEPT_HOURS = 24
LOCK_S = 5.0


class RequestCount(Struct, frozen=True):
    """Requests for one purpose in one hour.

    `unchanged` were answered with 304, which cost nothing; `failed` with an error, or not at all.
    `points` is what they took from the limit.
    """

    requests: int = 0
    unchanged: int = 0
    failed: int = 0
    points: int = 0

    def plus(self, other: RequestCount) -> RequestCount:
        """Return the sums of both."""
        return RequestCount(
            *(a + b for a, b in zip(structs.astuple(self), structs.astuple(other), strict=True))
        )


class Hour(Struct, frozen=True):
    """The requests of one hour, which began at `start` (seconds since the epoch), by purpose.

    `sessions` has what was sent for one session alone, by its name; `counts` has the rest.
    """

    start: float
    counts: dict[str, RequestCount] = {}
    sessions: dict[str, dict[str, RequestCount]] = {}

    def list_counts(self, session: str) -> dict[str, RequestCount]:
        """Return what was sent for that session; with '' what was sent for no single one."""
        return self.sessions.get(session, {}) if session else self.counts


class QuotaBook(Struct, frozen=True):
    """Contents of the file. `account` is the token's fingerprint that the limits belong to.

    So does `blocked_until`, before which no request is taken (seconds since the epoch).
    """

    hours: tuple[Hour, ...] = ()
    limits: dict[str, RateLimit] = {}
    blocked_until: float = 0.0
    account: str = ""

    def by_session(self, since: float = 0.0) -> dict[tuple[str, str], RequestCount]:
        """The counts of all hours that began at `since` or later, by session and purpose.

        The session is '' for what was sent for all.
        """
        found: dict[tuple[str, str], RequestCount] = {}
        for hour in (one for one in self.hours if one.start >= since):
            for session in ("", *hour.sessions):
                for purpose, count in hour.list_counts(session).items():
                    known = found.get((session, purpose), RequestCount())
                    found[session, purpose] = known.plus(count)
        return found


def read_book(path: Path) -> QuotaBook:
    """The ledger in `path`, an empty one if there is none."""
    return read_rebuildable(path, QuotaBook) or QuotaBook()


class QuotaLedger:
    """The ledger of one project. Without a file it is kept in memory."""

    def __init__(self, path: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        """`path` is in a private folder; its lock is beside it."""
        self._path, self._clock, self._memory = path, clock, QuotaBook()

    def read(self) -> QuotaBook:
        """Return what is known now."""
        return self._memory if self._path is None else read_book(self._path)

    def count(
        self, purpose: str, count: RequestCount, limit: RateLimit | None, account: str
    ) -> None:
        """Enter a request."""
        now = self._clock()

        def enter(book: QuotaBook) -> QuotaBook:
            known = book if book.account in ("", account) else QuotaBook()
            limits = {**known.limits, limit.bucket: limit} if limit else known.limits
            hours = _enter(book.hours, purpose, count, now)
            return QuotaBook(hours, limits, known.blocked_until, account)

        self._change(enter)

    def block(self, until: float) -> None:
        """No process is to send a request before `until`."""
        self._change(
            lambda book: structs.replace(book, blocked_until=max(book.blocked_until, until))
        )

    def _change(self, change: Callable[[QuotaBook], QuotaBook]) -> None:
        """A ledger that cannot be written keeps no request from being made."""
        if self._path is None:
            self._memory = change(self._memory)
            return
        beside = self._path.with_suffix(".lock")
        with contextlib.suppress(SmError), lock.hold(beside, timeout_s=LOCK_S):
            write_json(self._path, change(read_book(self._path)))


def _enter(
    hours: tuple[Hour, ...], purpose: str, count: RequestCount, now: float
) -> tuple[Hour, ...]:
    start, session = now // HOUR_S * HOUR_S, SPENDER.get()
    known = {hour.start: hour for hour in hours if 0 <= start - hour.start < KEPT_HOURS * HOUR_S}
    this = known.get(start, Hour(start))
    counts = this.list_counts(session)
    entered = {**counts, purpose: counts.get(purpose, RequestCount()).plus(count)}
    if session:
        known[start] = structs.replace(this, sessions={**this.sessions, session: entered})
    else:
        known[start] = structs.replace(this, counts=entered)
    return tuple(known[one] for one in sorted(known))
