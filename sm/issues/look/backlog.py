"""Backlog: issues that may be worked on and picked up, by the last look at the forge.

An issue whose text no trusted person vouches for is not picked up. It is asked for again after a
while, or when its text has changed: each time costs a request or two, and it takes no place of an
issue that can be worked on. Issues that wait for each other are never picked up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from sm.adapters.forge.model import Issue, IssueState
from sm.base.issue_id import IssueId, rank, spell
from sm.config.schema import ProjectSettings
from sm.issues.look.forge_view import Snapshot
from sm.sessions.project import Project
from sm.store import events, journal
from sm.store.damage import read_rebuildable
from sm.store.files import write_json
from sm.store.paths import ProjectDir, name_session


def list_ready(project: Project, seen: Snapshot) -> list[Issue]:
    """Return the issues that may be picked up, oldest first."""
    labels, trust = project.settings.labels, seen.trust(project.settings)
    return sorted(
        (
            issue
            for issue in seen.issues
            if is_workable(project.settings, issue)
            and labels.backlog in issue.labels
            and trust.includes(issue.author)
            and not list_blockers(seen, issue)
            and not issue.waits
        ),
        key=lambda issue: rank(issue.number),
    )


def list_blockers(seen: Snapshot, issue: Issue) -> list[IssueId]:
    """Return the open issues that `issue` depends on."""

    def is_closed(number: IssueId) -> bool:
        found = seen.issue(number)
        return found is not None and found.state is IssueState.CLOSED

    return [number for number in issue.dependencies() if not is_closed(number)]


def is_workable(project: ProjectSettings, issue: Issue) -> bool:
    """Whether the issue is open, and not blocked."""
    return issue.state is IssueState.OPEN and project.labels.blocked not in issue.labels


AGAIN_S = 300.0
"""Seconds until an issue is asked for again: a label may be taken off and set between two looks."""


class Doubt(Struct, frozen=True):
    """Reason why the text with that hash was not taken, `at` seconds since 1970."""

    text_hash: str
    at: float
    why: str


Doubts = dict[str, Doubt]
"""Doubts by the number of the issue."""


def _read_doubts(directory: ProjectDir) -> Doubts:
    return read_rebuildable(directory.doubts, Doubts) or {}


def note_doubt(directory: ProjectDir, issue: Issue, why: str) -> None:
    """Record that the issue was not taken now, and why."""
    known = _read_doubts(directory)
    write_json(
        directory.doubts, {**known, str(issue.number): Doubt(issue.text_hash, time.time(), why)}
    )


def tell_doubt(project: Project, issue: Issue, what: str, why: str) -> str:
    """Record the doubt, in the journal only once, and return the line that a tick says about it."""
    note_doubt(project.directory, issue, why)
    name = name_session(project.name, issue.number)
    journal.record_once(project.root.journal, events.Problem(session=name, text=why))
    return f"did not {what} {why}"


def find_doubt(directory: ProjectDir, issue: Issue) -> str:
    """Return why the issue was not taken, '' if it was not asked for since its last change."""
    doubt = _read_doubts(directory).get(str(issue.number))
    return doubt.why if doubt and doubt.text_hash == issue.text_hash else ""


def pass_over_doubtful(directory: ProjectDir, ready: Sequence[Issue], *, keep: bool) -> list[Issue]:
    """Return those of `ready` that may be tried; with `keep`, past doubts are forgotten.

    An issue that is no longer ready has lost its label: if it is set again, that is a new one.
    """
    known = _read_doubts(directory)
    if not known:
        return list(ready)
    now = time.time()
    held = {
        str(issue.number): doubt
        for issue in ready
        if (doubt := known.get(str(issue.number)))
        and doubt.text_hash == issue.text_hash
        and 0 <= now - doubt.at < AGAIN_S
    }
    if keep and held != known:
        write_json(directory.doubts, held)
    return [issue for issue in ready if str(issue.number) not in held]


def find_circle(
    start: IssueId, needs: Callable[[IssueId], Iterable[IssueId]]
) -> tuple[IssueId, ...]:
    """Find the way from an issue back to itself, over what each needs; empty if there is none."""
    came_from: dict[IssueId, IssueId] = {start: 0}
    ahead = [start]
    while ahead:
        number = ahead.pop(0)
        for needed in needs(number):
            if needed == start:
                way = [start]
                while number != start:
                    way.insert(1, number)
                    number = came_from[number]
                return (start, *way[1:], start)
            if needed not in came_from:
                came_from[needed] = number
                ahead.append(needed)
    return ()


def explain_circle(circle: tuple[IssueId, ...]) -> str:
    """Say what is wrong and what helps, '' if there is no circle."""
    if not circle:
        return ""
    way = " → ".join(spell(number) for number in circle)
    itself = "itself" if len(circle) == 2 else f"itself by {way}"
    return f"; so it waits for {itself}: edit the text of one of them"
