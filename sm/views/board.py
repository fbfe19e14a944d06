"""Board: the rows of an overview, one for each session, for the page and `sm top`.

A row is made once, of what `sm status` and `sm needs` show too; it has values, and no markup.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from enum import StrEnum

from msgspec import Struct

from sm.base.errors import SmError
from sm.base.redact import redact
from sm.base.text import one_line
from sm.context import usage
from sm.context.flags import read_flags
from sm.context.thresholds import FULL
from sm.messages import queue
from sm.messages.follow_up import read_last_words
from sm.messages.queue import Place
from sm.sessions.activity import Proof
from sm.store.paths import Root, SessionDir
from sm.views.family import AdHocRow
from sm.views.figures import NO_FIGURES, OfSession
from sm.views.known import read_or
from sm.views.needs import sort_needs
from sm.views.open_need import OpenNeed
from sm.views.project import (
    Overview,
)
from sm.views.session import CHECKS, VERDICTS, Inside, StatusRow
from sm.views.states import ShownState

WORDS = 200
"""Characters of an agent's last words that a row has."""


class Stop(StrEnum):
    """A stop on the way of an issue, in its order."""

    WORK = "work"
    CI = "CI"
    REVIEW = "review"
    MERGE = "merge"


class Mark(StrEnum):
    """Progress of an issue at a stop: past it, at it, turned back there, or not there yet."""

    DONE = "done"
    NOW = "now"
    BACK = "back"
    AHEAD = "ahead"


Track = tuple[tuple[Stop, Mark], ...]
"""Every stop in its order; () for a session that works on no issue."""


class BoardRow(Struct, frozen=True, kw_only=True):
    """Row of one session. Times are in seconds since 1970, 0 if they are not known.

    `id` is the session's, `name` what people call it, such as `shop#7`. `state` holds since
    `state_since`, and `proof` proves it. `percent` says how full its context is, None if unknown.
    `queued` is the number of messages that wait for its agent. `need` is what a person is needed
    for, None for nothing; `person` says what somebody in its terminal is doing. `waits_for`,
    `problem`, `event` (the last event, in few words) and `words` (what the agent said last at the
    end of a turn) are '' for nothing. `link` leads to the pull request, which was seen at the
    commit `head`. `figures` are what plugins know, such as its cost. `host` is the machine that it
    runs on, '' for this one; `inside` is what another machine says of it.
    """

    id: str
    name: str
    project: str = ""
    issue: int = 0
    title: str = ""
    state: ShownState
    state_since: float = 0.0
    proof: Proof
    track: Track = ()
    pull: int = 0
    link: str = ""
    head: str = ""
    ci: str = ""
    review: str = ""
    fixes: int = 0
    rounds: int = 0
    restarts: int = 0
    percent: float | None = None
    queued: int = 0
    need: OpenNeed | None = None
    person: str = ""
    waits_for: str = ""
    problem: str = ""
    event: str = ""
    event_at: float = 0.0
    words: str = ""
    begun_at: float = 0.0
    figures: OfSession = NO_FIGURES
    host: str = ""
    inside: Inside | None = None


class Board(Struct, frozen=True, kw_only=True):
    """Board at the moment `at`: first what needs a person, then every session.

    `seen` says when each project's forge was looked at last. `paused` and `problems` are sentences.
    """

    at: float
    needs: tuple[OpenNeed, ...] = ()
    rows: tuple[BoardRow, ...] = ()
    seen: dict[str, float] = {}
    paused: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def find(self, ident: str) -> BoardRow | None:
        """Return the row of the session with that id."""
        return next((row for row in self.rows if row.id == ident), None)


Link = Callable[[str, int], str]
"""Function that returns the link to a project's pull request, '' for none."""


Shown = StatusRow | AdHocRow
"""Rows of `sm status`, from which the board makes its own."""


def assemble(
    overviews: Collection[Overview],
    now: float,
    make: Callable[[Shown], BoardRow],
    of_machine: OpenNeed | None = None,
) -> Board:
    """Make the board of these overviews, and each of its rows by `make`.

    `of_machine` is what the machine itself needs a person for.
    """
    needs = [need for one in overviews for need in one.needs]
    return Board(
        at=now,
        needs=tuple(sort_needs([of_machine, *needs] if of_machine else needs)),
        rows=tuple(make(row) for one in overviews for row in _list_shown(one)),
        seen={one.project: one.seen_at for one in overviews if one.project},
        paused=tuple(dict.fromkeys(sentence for one in overviews for sentence in one.paused)),
        problems=tuple(_list_problems(overviews)),
    )


def _list_shown(one: Overview) -> Iterator[Shown]:
    yield from one.sessions
    yield from one.ad_hoc


def make_row(root: Root, shown: Shown, now: float, link: Link) -> BoardRow:
    """Make the row of a session."""
    if isinstance(shown, AdHocRow):
        return _of_person(root.session(shown.id), shown, now)
    where = link(shown.project, shown.pull) if shown.pull else ""
    return _of_issue(root.session(shown.session), shown, now, where)


def _list_problems(overviews: Iterable[Overview]) -> Iterator[str]:
    for one in overviews:
        yield from (f"{one.project}: {one_line(problem)}" for problem in one.problems)
        if one.hint:
            yield f"{one.project}: {one_line(one.hint)}"


def _of_issue(directory: SessionDir, row: StatusRow, now: float, link: str) -> BoardRow:
    inside = (row.inside or Inside()) if row.host else read_inside(directory)
    digits = 0 if row.host else 2  # what another machine says has taken its time
    return BoardRow(
        id=row.session,
        name=f"{row.project}#{row.issue}",
        project=row.project,
        issue=row.issue,
        title=one_line(row.title),
        state=row.phase,
        state_since=row.state_since,
        proof=row.proof,
        track=draw_track(row),
        pull=row.pull,
        link=link,
        head=row.head,
        ci=row.ci,
        review=row.review,
        fixes=row.fixes,
        rounds=row.rounds,
        restarts=row.recoveries,
        percent=inside.percent,
        queued=inside.queued,
        need=row.need,
        person=row.person,
        waits_for=one_line(row.waits_for),
        problem=row.problem,
        event=row.last_event,
        event_at=_moment(now, row.last_event_age_s, digits) if row.last_event else 0.0,
        words=inside.words,
        begun_at=_moment(now, row.age_s, digits),
        figures=row.figures,
        host=row.host,
        inside=row.inside,
    )


def read_inside(directory: SessionDir) -> Inside:
    """Read what only the files of a session on this machine say."""
    waiting = queue.count(directory, Place.WAITING)
    return Inside(_read_percent(directory), waiting, read_words(directory))


def _of_person(directory: SessionDir, kin: AdHocRow, now: float) -> BoardRow:
    return BoardRow(
        id=kin.id,
        name=kin.name,
        title=kin.cwd,
        state=kin.state,
        state_since=kin.state_since,
        proof=kin.proof,
        percent=_read_percent(directory),
        queued=kin.waiting,
        need=kin.need,
        person=kin.person,
        waits_for=kin.rotation,
        words=read_words(directory),
        begun_at=_moment(now, kin.age_s),
        figures=kin.figures,
    )


def _moment(now: float, age_s: float, digits: int = 2) -> float:
    """Return the moment that many seconds ago, rounded so that each look finds the same."""
    return round(now - age_s, digits)


def _read_percent(directory: SessionDir) -> float | None:
    def read() -> float | None:
        found = usage.read_current(directory, read_flags(directory))
        return None if found is None or found.percent is None else min(found.percent, FULL)

    return read_or(_pass_over, read, None)


def read_words(directory: SessionDir) -> str:
    """Return what the agent said at the end of its last turn, in one line, cleared of secrets."""
    return one_line(redact(read_last_words(directory, 0.0)), WORDS)


def _pass_over(_: SmError) -> None:
    """Leave out what cannot be read: the state in the row says that the session is damaged."""


# The way of an issue

NOT_BEGUN = (ShownState.DAMAGED,)
OVER = (ShownState.DONE, ShownState.MERGED)
LOST = (ShownState.FAILED, ShownState.CRASHED)


def draw_track(row: StatusRow) -> Track:
    """Return how far the issue is: work, CI, review, merge."""
    if row.phase in OVER:
        return tuple((stop, Mark.DONE) for stop in Stop)
    if row.phase in NOT_BEGUN:
        return tuple((stop, Mark.AHEAD) for stop in Stop)
    ci, review = _mark_ci(row), _mark_review(row)
    merge = Mark.NOW if (ci, review) == (Mark.DONE, Mark.DONE) else Mark.AHEAD
    return (
        (Stop.WORK, _mark_work(row)),
        (Stop.CI, ci),
        (Stop.REVIEW, review),
        (Stop.MERGE, Mark.BACK if row.review == "conflicts" else merge),
    )


def _mark_work(row: StatusRow) -> Mark:
    if row.phase in LOST:
        return Mark.BACK
    return Mark.DONE if row.phase in OFFERED or _is_accepted(row) else Mark.NOW


OFFERED = (ShownState.AWAITING_CI, ShownState.AWAITING_REVIEW)
PASSED, FAILED, PENDING, BROKEN = CHECKS.values()
APPROVED, CHANGES = VERDICTS.values()


def _is_accepted(row: StatusRow) -> bool:
    return row.ci == PASSED and row.review == APPROVED


def _mark_ci(row: StatusRow) -> Mark:
    if row.ci in (FAILED, BROKEN):
        return Mark.BACK
    if row.ci == PASSED or row.phase is ShownState.AWAITING_REVIEW:
        return Mark.DONE
    awaited = row.ci == PENDING or row.phase is ShownState.AWAITING_CI
    return Mark.NOW if awaited else Mark.AHEAD


def _mark_review(row: StatusRow) -> Mark:
    if row.review == CHANGES:
        return Mark.BACK
    if row.review == APPROVED:
        return Mark.DONE
    return Mark.NOW if row.phase is ShownState.AWAITING_REVIEW else Mark.AHEAD
