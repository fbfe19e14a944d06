"""Report of a node on the sessions that others have placed there."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from msgspec import DecodeError, Struct, structs, to_builtins

from sm.base.decoder import decode
from sm.base.errors import SmError, UsageError
from sm.channels import people
from sm.issues.look.room import list_shortages
from sm.plugins.hosts.node.attempts import find_attempt, has_begun
from sm.plugins.hosts.rules import MergeTerms, read_rules
from sm.sessions import plan, registry
from sm.sessions.history import Escalation, fold
from sm.sessions.project import Project
from sm.sessions.session import AnySession
from sm.store.paths import SessionDir
from sm.views.family import add_fields, look_near
from sm.views.project import read_overview
from sm.views.session_row import SessionRow, tell_status


class NodeReport(Struct, frozen=True, kw_only=True):
    """Report on sessions. `now` is the node's clock, in seconds since 1970.

    `said_at` is that clock at the end, 0 for an `sm` that can be brought no look at the forge.
    `rows` are those of `sm status`, by session; `ended` were begun here and are over; whatever
    else was asked for is unknown here. `short` is what keeps anything more from being begun.
    `strays` is how many other attempts have a session on record here, which is to end.
    `rules` are those by which it merges, None for an `sm` that does not say.
    """

    now: float
    said_at: float = 0.0
    rows: dict[str, dict[str, Any]] = {}
    ended: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    rules: MergeTerms | None = None
    strays: int = 0


Asked = tuple[str, int]
"""A session by its name, and the number of its attempt."""


def report(project: Project, asked: Iterable[Asked]) -> NodeReport:
    """Return how these sessions of the project stand here."""
    now = time.time()
    wanted = list(asked)
    here = {name for name, attempt in wanted if find_attempt(project.root, name) == attempt}
    overview = read_overview(project, now, with_kept=False) if here else None
    rows = overview.sessions if overview else ()
    found = NodeReport(
        now=now,
        rows={
            row.id: _describe(row, session, now)
            for row in rows
            if row.id in here and (session := registry.find(project.root, row.id))
        },
        ended=tuple(
            name
            for name, attempt in wanted
            if name not in here and has_begun(project.root, name, attempt)
        ),
        short=tuple(one.shortly for one in list_shortages(project)),
        rules=read_rules(project.settings),
        strays=sum(
            one.attempt > 0 and (one.name, one.attempt) not in wanted
            for one in registry.list_for(project)
        ),
    )
    return structs.replace(found, said_at=time.time())


def _describe(row: SessionRow, session: AnySession, now: float) -> dict[str, Any]:
    """Return the row with what is only here: the other machine shows it as if it were its own."""
    row = add_fields(look_near(row, session), session, ("document", "paused"))
    # As long as a session is asked before people, these are told nothing anywhere.
    asked = _find_last_asked(session.dir) if row.need else None
    is_first = asked is not None and bool(asked.first)
    row = structs.replace(
        row,
        documents=bool(row.document),
        told=row.need is not None and (is_first or people.reaches(session, row.need.kind)),
        reminders=asked.reminders if asked else 0,
    )
    found: dict[str, Any] = to_builtins(tell_status(row, now))
    return found


def _find_last_asked(directory: SessionDir) -> Escalation | None:
    """The last question of the session."""
    try:
        asked = fold(plan.read_receipts(directory)).escalations.values()
    except SmError:  # its passes say what is wrong with it
        return None
    return max(asked, key=lambda one: one.at, default=None)


def read_asked(text: str) -> list[Asked]:
    """Read which sessions are asked for, and which attempts.

    Raises:
        UsageError: the text says another thing.

    """
    try:
        return decode(text.encode(), list[Asked])
    except DecodeError as error:
        raise UsageError(f"expected sessions and attempts as JSON: {error}") from error
