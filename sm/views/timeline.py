"""Timeline of events across sessions: merged, asked, failed, restarted, newest first.

`read_news` of sm/views/news.py tells the same events as they happen.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct, structs

from sm.base.issue_id import IssueId, spell
from sm.base.need import NeedKind
from sm.issues.rules.needs import KINDS
from sm.sessions.history import StepVerb
from sm.store import events, journal
from sm.store.events import Decided, Event, Started, StepDone
from sm.store.paths import find_issue_id
from sm.views import news
from sm.views.trace import MERGED, OUTCOMES

MOST = 500
"""Entries of a timeline; of more, the newest are shown."""
CLOCK_S = 24 * 3600.0
"""Time by which a clock may have been set back between two events, in seconds."""


class TimelineKind(StrEnum):
    """Kind of what has happened, as a person filters it."""

    MERGED = "merged"
    ASKED = "asked"
    ANSWERED = "answered"
    FAILED = "failed"
    RESTARTED = "restarted"
    OFFERED = "offered"
    JUDGED = "judged"
    ENDED = "ended"


class TimelineEntry(Struct, frozen=True):
    """One thing that has happened, at `at` (seconds since 1970), to the session of that id.

    `name` is what people call the session; `project` and `title` are '', and `issue` is 0, where
    there is none or it is not known.
    """

    at: float
    kind: TimelineKind
    session: str
    name: str
    text: str
    project: str = ""
    issue: IssueId = 0
    title: str = ""


class Timeline(Struct, frozen=True):
    """Entries since a moment, newest first; without `is_whole` there may be earlier ones."""

    entries: tuple[TimelineEntry, ...] = ()
    is_whole: bool = True

    def count(self) -> dict[TimelineKind, int]:
        """Count the entries of each kind, in the order of the kinds."""
        counted = Counter(one.kind for one in self.entries)
        return {kind: counted[kind] for kind in TimelineKind if kind in counted}


def read_timeline(path: Path, projects: Iterable[str], since: float) -> Timeline:
    """Read what the journal `path` tells of these projects, and of all other sessions, since then.

    Raises:
        StateError: the journal is no plain file of ours.

    """
    recent, is_whole = _read_since(path, since)
    found = list(itertools.islice(_list_entries(recent, tuple(projects)), MOST + 1))
    titles = _read_titles(path, {one.session for one in found if one.issue})
    shown = (structs.replace(one, title=titles.get(one.session, "")) for one in found[:MOST])
    return Timeline(tuple(shown), is_whole and len(found) <= MOST)


def _read_since(path: Path, since: float) -> tuple[list[Event], bool]:
    """Return the events since a moment, newest first, and whether those are all."""
    found = list[Event]()
    for event in journal.read_newest_first(path):
        if event.at < since - CLOCK_S:
            return found, True
        if event.at >= since:
            found.append(event)
    return found, journal.is_read_whole(path)


def _list_entries(found: Iterable[Event], projects: tuple[str, ...]) -> Iterator[TimelineEntry]:
    for event in found:
        if not event.session:
            continue
        kind, text = judge(event)
        if kind is None:
            continue
        project, issue = _find_issue(event.session, projects)
        name = f"{project}{'' if isinstance(issue, int) else ' '}{spell(issue)}" if issue else ""
        yield TimelineEntry(
            event.at, kind, event.session, name or event.session, text, project, issue
        )


def judge(event: Event) -> tuple[TimelineKind | None, str]:
    """Return of which kind an event is, and what it says; None if it is nothing to tell."""
    if why := news.find_need(event):
        assert isinstance(event, StepDone)
        failed = KINDS.get(event.row) in (NeedKind.FAILED, NeedKind.BLOCKED)
        return (TimelineKind.FAILED if failed else TimelineKind.ASKED), why
    return _find_kind(event), news.tell(event)


def _find_kind(event: Event) -> TimelineKind | None:
    match event:
        case Decided(row=row):
            return BY_ROW.get(row)
        case events.Reply():
            return TimelineKind.ANSWERED
        case events.RecoverAsked():
            return TimelineKind.RESTARTED
        case events.Kill():
            return TimelineKind.ENDED
        case StepDone(verb=StepVerb.OPEN_PULL):
            return TimelineKind.OFFERED
    return None


BY_ROW = {
    **{
        row: TimelineKind.ENDED
        for row, told in OUTCOMES.items()
        if told != MERGED and row not in KINDS
    },
    "merge-seen": TimelineKind.MERGED,
    "recover": TimelineKind.RESTARTED,
    "login-again": TimelineKind.RESTARTED,
    "ci-passed": TimelineKind.JUDGED,
    "ci-failed": TimelineKind.JUDGED,
    "review-red": TimelineKind.JUDGED,
    "review-changes": TimelineKind.JUDGED,
    "approved": TimelineKind.JUDGED,
    "approved-merge": TimelineKind.JUDGED,
    "conflict": TimelineKind.JUDGED,
}
"""Kinds of decisions, by row; `news.DECIDED` has their words."""


def _find_issue(session: str, projects: tuple[str, ...]) -> tuple[str, IssueId]:
    for project in projects:
        if issue := find_issue_id(project, session):
            return project, issue
    return "", 0


def _read_titles(path: Path, sessions: set[str]) -> dict[str, str]:
    found = dict[str, str]()
    for event in journal.read_having(path, "started") if sessions else ():
        if isinstance(event, Started) and event.session in sessions:
            found.setdefault(event.session, event.title)
    return found
