"""Work of the agents by day and project, counted from the journal's events.

`Numbers` takes each event once, in the journal's order, and keeps sums alone: one for each day and
project, and the standing of each session that is not over. `NumbersReader` reads the journal on.
"""

from __future__ import annotations

import functools
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from sm.base.errors import SmError
from sm.base.issue_id import IssueId, read_part
from sm.issues.look import phase_file
from sm.issues.rules.matrix import BY_NAME
from sm.sessions import registry
from sm.sessions.history import Count, StepVerb
from sm.store import events, journal
from sm.store.events import Event, RotationStep
from sm.store.paths import Root
from sm.views.trace import MERGED, OUTCOMES
from sm.views.whose_turn import Span, Turn, TurnStanding, is_end

OF_ISSUE = re.compile(r"dev-(.+)-([0-9]+|[A-Z][A-Z0-9_]*_[0-9]+)", re.ASCII)
"""Name of an issue's session; dots of its project are underscores there."""
EARLIEST = 1e9
"""Earliest moment that counts (in 2001): before that the clock was not set yet."""


class DayNumbers(Struct, frozen=True):
    """Sums of a day in a project; '' is the project of sessions without an issue.

    `merged` are issues. `restarts` are of agents, after a crash or by hand. `rotations` are
    contexts that were replaced. `ci_attempts` are those that agents had after a failed CI, `rounds`
    those after a review that asked for changes. The others are seconds, by whose turn it was.
    """

    day: str
    project: str = ""
    merged: int = 0
    restarts: int = 0
    rotations: int = 0
    ci_attempts: int = 0
    rounds: int = 0
    agent_s: float = 0.0
    ci_s: float = 0.0
    review_s: float = 0.0
    person_s: float = 0.0
    rest_s: float = 0.0


COUNTED = ("merged", "restarts", "rotations", "ci_attempts", "rounds")
SECONDS = {turn: f"{turn}_s" for turn in Turn}
FIELDS = (*COUNTED, *SECONDS.values())


def name_day(at: float) -> str:
    """Return the day of a moment, in this machine's time zone."""
    return Days().find(at)[0]


class Days:
    """Calendar in this machine's time zone: the day of a moment, and when that day ends."""

    def __init__(self) -> None:
        """Begin with no known day."""
        self._begin = self._end = 0.0
        self._name = ""

    def find(self, at: float) -> tuple[str, float]:
        """Return the day's name, such as 2026-11-28, and the moment when the next one begins."""
        if not self._begin <= at < self._end:
            year, month, day, *_ = time.localtime(at)
            midnight = (0, 0, 0, 0, 0, -1)
            self._begin = time.mktime((year, month, day, *midnight))
            self._end = time.mktime((year, month, day + 1, *midnight))
            self._name = f"{year}-{month:02}-{day:02}"
        return self._name, self._end

    def split(self, begin: float, end: float) -> Iterator[tuple[str, float]]:
        """Split a time into days, each with its seconds."""
        while begin < end:
            day, midnight = self.find(begin)
            yield day, min(end, midnight) - begin
            begin = midnight


class Numbers:
    """Sums of all events so far, and the standing of each session that is not over."""

    def __init__(self) -> None:
        """Begin with no events."""
        self.first_at = 0.0
        self._days = Days()
        self._sums: dict[tuple[str, str], dict[str, float]] = {}
        self._standings: dict[str, TurnStanding] = {}
        self._merged: set[str] = set()

    def take(self, found: Iterable[Event], now: float) -> None:
        """Add these events; one in the future, from before a clock was set back, happens now."""
        for event in found:
            if event.at >= EARLIEST:
                at = min(event.at, now)
                self.first_at = min(self.first_at or at, at)
                self._count(event, at)
                self._follow(event, at)

    def _count(self, event: Event, at: float) -> None:
        if count := COUNTS.get(type(event)):
            day, _ = self._days.find(at)
            for field, number in count(event):
                if field != "merged" or self._is_new_merge(event):
                    self._add(day, _find_project(event.session), field, number)

    def _is_new_merge(self, event: Event) -> bool:
        """Whether a merge counts: once, when it is seen. An older version told only its end."""
        is_new = event.session not in self._merged
        if isinstance(event, events.StepDone):
            self._merged.discard(event.session)
        else:
            self._merged.add(event.session)
        return is_new

    def _follow(self, event: Event, at: float) -> None:
        if not event.session:
            for session in self._list_meant(event):
                self._tell(session, event, at)
        elif event.session in self._standings or _find_project(event.session):
            self._tell(event.session, event, at)

    def _list_meant(self, event: Event) -> list[str]:
        """List the sessions that a pause of a project, or of everything, is about."""
        if not isinstance(event, events.Paused | events.Resumed):
            return []
        named = event.what.replace(".", "_")
        return [one for one in self._standings if not named or _find_project(one) == named]

    def _tell(self, session: str, event: Event, at: float) -> None:
        standing = self._standings.get(session)
        if standing is None:
            if not isinstance(event, BEGINNINGS):
                return  # what is told of a session that is over, or began before the journal
            standing = self._standings[session] = TurnStanding(at)
        self._enter(session, standing.take(event, at))
        if is_end(event):
            del self._standings[session]

    def _enter(self, session: str, spans: Iterable[Span]) -> None:
        project = _find_project(session)
        for span in spans:
            for day, seconds in self._days.split(span.begin, span.end):
                self._add(day, project, SECONDS[span.turn], seconds)

    def _add(self, day: str, project: str, field: str, number: float) -> None:
        sums = self._sums.get((day, project))
        if sums is None:
            sums = self._sums[day, project] = dict.fromkeys(FIELDS, 0)
        sums[field] += number

    def reach(self, now: float, phases: Mapping[str, tuple[str, float]]) -> None:
        """Count the time of the existing sessions up to `now`.

        `phases` has each of them, with the phase that its agent has written last, and when. The
        time of other sessions ends with their last event: they are over, and nothing said so.
        """
        for session, (phase, written) in phases.items():
            if standing := self._standings.get(session):
                spans = standing.take_phase(phase, written, now)
                self._enter(session, (*spans, standing.advance(now)))

    def list_open(self) -> Iterator[tuple[str, str, IssueId]]:
        """Yield the sessions that are not over, each with its project and issue."""
        for session in self._standings:
            if (found := OF_ISSUE.fullmatch(session)) and (issue := read_part(found[2])):
                yield session, found[1], issue

    def list_days(self, since: str, name: Callable[[str], str]) -> list[DayNumbers]:
        """List the days from that day on, the oldest first; `name` maps a project to its name."""
        found: dict[tuple[str, str], dict[str, float]] = {}
        for (day, project), sums in self._sums.items():
            if day >= since:
                key = day, name(project)
                known = found.setdefault(key, dict.fromkeys(FIELDS, 0))
                found[key] = {field: known[field] + sums[field] for field in FIELDS}
        return [
            DayNumbers(day, project, **{field: sums[field] for field in FIELDS})  # type: ignore[arg-type]
            for (day, project), sums in sorted(found.items())
        ]


BEGINNINGS = (events.Claimed, events.Started)


@functools.lru_cache(maxsize=4096)
def _find_project(session: str) -> str:
    """Find the project of an issue's session, '' for any other."""
    found = OF_ISSUE.fullmatch(session)
    return found[1] if found else ""


Counted = Iterable[tuple[str, int]]


def _count_row(row: str, number: int) -> Counted:
    if row == "recover":
        yield "restarts", number
    counts = BY_NAME[row].counts if row in BY_NAME else Count.NONE
    if counts is Count.FIX:
        yield "ci_attempts", number
    elif counts is Count.ROUND:
        yield "rounds", number


def _count_decided(event: events.Decided) -> Counted:
    yield from _count_row(event.row, 1)
    if event.row == "merge-seen":
        yield "merged", 1


def _count_dropped(event: events.Dropped) -> Counted:
    return _count_row(event.row, -1)


def _count_step(event: events.StepDone) -> Counted:
    if event.verb == StepVerb.FORGET and OUTCOMES.get(event.row) == MERGED:
        yield "merged", 1


def _count_restart(_event: events.RecoverAsked) -> Counted:
    yield "restarts", 1


def _count_rotation(event: events.Rotation) -> Counted:
    if event.step is RotationStep.FINISHED:
        yield "rotations", 1


COUNTS: dict[type[Event], Callable[[Any], Counted]] = {
    events.Decided: _count_decided,
    events.Dropped: _count_dropped,
    events.StepDone: _count_step,
    events.RecoverAsked: _count_restart,
    events.Rotation: _count_rotation,
}
"""Counters of each kind of event."""


def add_up(days: Iterable[DayNumbers], day: str = "") -> DayNumbers:
    """Add all of them up, as if they were that day."""
    found = list(days)
    sums = {field: sum(getattr(one, field) for one in found) for field in FIELDS}
    return DayNumbers(day, **sums)


class NumbersReader:
    """Reader that keeps the sums of the journal, so that a look reads only what is new."""

    def __init__(self, root: Root, hear: Callable[[Event], object] | None = None) -> None:
        """Begin with nothing read; `hear` is given each event once, too."""
        self._root, self._hear = root, hear
        self._lock = threading.Lock()
        self._journal = journal.Reader(root.journal)
        self._numbers = Numbers()

    def read(self, projects: Collection[str], since: str = "") -> list[DayNumbers]:
        """Return the days from that day on, also of projects that are not configured any more.

        Raises:
            StateError: the journal is no plain file of ours.

        """
        names = {name.replace(".", "_"): name for name in projects}
        with self._lock:
            # Whatever happens while it is read belongs to the next look.
            now = time.time()
            self._numbers.take(self._read_on(), now)
            self._numbers.reach(now, dict(self._list_phases(names)))
            return self._numbers.list_days(since, lambda name: names.get(name, name))

    def _read_on(self) -> Iterator[Event]:
        for event in self._journal.read_on():
            if self._hear:
                self._hear(event)
            yield event

    @property
    def first_at(self) -> float:
        """Time of the first known event, in seconds since 1970; 0 if there is none."""
        return self._numbers.first_at

    @property
    def is_cut(self) -> bool:
        """Whether the journal was begun again, so that events before the first may be gone."""
        return journal.name_previous(self._root.journal).exists()

    def _list_phases(self, names: dict[str, str]) -> Iterator[tuple[str, tuple[str, float]]]:
        """Yield each existing session, with the phase that its agent has written last, and when."""
        there = set(registry.list_session_names(self._root))
        for session, project, issue in self._numbers.list_open():
            if session in there:
                yield session, self._read_phase(names.get(project, project), issue)

    def _read_phase(self, project: str, issue: IssueId) -> tuple[str, float]:
        """Read the phase file: the phase, and since when; an empty one if it cannot be read."""
        try:
            write = phase_file.read(self._root, project, issue)
        except SmError:
            return "", 0.0
        return (write.text, round(write.at, 3)) if write else ("", 0.0)
