"""Requests of each project to its forge, and what is left: what `sm quota` shows."""

from __future__ import annotations

import time
from collections.abc import Iterable

from msgspec import Struct

from sm.config.schema import ProjectSettings
from sm.plugins.forges.rest.state import ForgeFiles
from sm.plugins.forges.web.ledger import HOUR_S, Hour, QuotaBook, RequestCount, read_book
from sm.plugins.forges.web.limits import RateLimit
from sm.store.paths import Root


class SpentRequests(Struct, frozen=True):
    """The requests for one purpose: in this hour, and in the last 24 hours.

    `session` is the one that they were sent for, '' if they were for all of them.
    """

    purpose: str
    hour: RequestCount
    day: RequestCount
    session: str = ""


class Quota(Struct, frozen=True):
    """The requests of a project. `blocked_until` is 0 while the forge takes them.

    `hours` are the last 24 in which there were any; what is `spent` in them is their sum.
    """

    project: str
    forge: str
    limits: tuple[RateLimit, ...] = ()
    blocked_until: float = 0.0
    spent: tuple[SpentRequests, ...] = ()
    hours: tuple[Hour, ...] = ()


def read_quotas(root: Root, projects: Iterable[ProjectSettings]) -> list[Quota]:
    """Return the quota of each project that has sent requests; the embedded forge gets none."""
    now = time.time()
    books = [
        (project, read_book(ForgeFiles(root.project(project.name).path).quota))
        for project in projects
    ]
    return [make_quota(project, book, now) for project, book in books if book.hours]


def make_quota(project: ProjectSettings, book: QuotaBook, now: float) -> Quota:
    """Make the quota of a project from its ledger, at `now` (seconds since the epoch)."""
    hour, day = book.by_session(now // HOUR_S * HOUR_S), book.by_session()
    return Quota(
        project=project.name,
        forge=project.forge.place,
        limits=tuple(limit for _, limit in sorted(book.limits.items()) if limit.resets_at > now),
        blocked_until=book.blocked_until if book.blocked_until > now else 0.0,
        spent=tuple(
            SpentRequests(
                purpose,
                hour.get((session, purpose), RequestCount()),
                day[session, purpose],
                session,
            )
            for session, purpose in sorted(day)
        ),
        hours=book.hours,
    )
