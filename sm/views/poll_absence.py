"""Absence of dev-poll where something waits for it; in words for `sm status` and `sm doctor`."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from sm.base.errors import SmError
from sm.config import duration
from sm.issues.look import backlog
from sm.issues.look.backlog import list_ready
from sm.issues.look.snapshot import Snapshot, find_longest_interval, last_snapshot
from sm.issues.look.tick_record import MISSED, TickSilence, read_polled, read_silence
from sm.issues.work import claim
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import lock


def is_waited_for(project: Project, sessions: Collection[IssueSession], known: Snapshot) -> bool:
    """Whether a tick would find anything to do: sessions, or issues that can be taken up.

    A person who only uses `sm new` needs none. Nor does a machine on which another installation has
    placed its sessions: that installation asks for the ticks.
    """
    if sessions:
        return any(not one.record.attempt for one in sessions)
    directory = project.root.project(project.name)
    return any(
        not claim.is_held(issue.number, known.refs) and not backlog.find_doubt(directory, issue)
        for issue in list_ready(project, known)
    )


def find_silence(project: Project, known: Snapshot) -> TickSilence | None:
    """Return how long an expected tick is missing; None while they come, or if none ever came.

    An older version recorded only its last look at the forge.
    """
    directory = project.root.project(project.name)
    if read_polled(directory) is not None:
        return read_silence(project)
    for_s = time.time() - known.taken_at
    patience_s = MISSED * find_longest_interval(project.settings)
    if not known.taken_at or for_s <= patience_s or lock.is_held(directory.poll_lock):
        return None
    return TickSilence(known.taken_at, for_s)


def find_missed(
    project: Project, sessions: Collection[IssueSession], known: Snapshot
) -> TickSilence | None:
    """Return how long no tick has come although something waits for one; None otherwise."""
    return find_silence(project, known) if is_waited_for(project, sessions, known) else None


def list_unseen(projects: Iterable[Project]) -> list[str]:
    """Name the projects whose forge nobody has looked at: what waits there is not known."""
    return [one.name for one in projects if not _read_taken_at(one)]


def _read_taken_at(project: Project) -> float:
    try:
        known = last_snapshot(project.root.project(project.name))
    except SmError:  # `sm status` tells of a look that cannot be read
        return 0.0
    return known.taken_at if known else 0.0


def word_silence(silence: TickSilence) -> str:
    """Put the silence into words for a person."""
    return f"no dev-poll has run for {duration.show(silence.for_s // 60 * 60)}"


def word_absence(project: Project) -> str:
    """Say that no dev-poll runs, as far as its ticks tell; '' if one does or did until just now."""
    directory = project.root.project(project.name)
    if silence := read_silence(project):
        return word_silence(silence)
    never = read_polled(directory) is None and not lock.is_held(directory.poll_lock)
    return "dev-poll is not running" if never else ""


START = "start it with dev-poll --loop, or from cron"
