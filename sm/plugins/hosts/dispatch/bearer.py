"""Runner that brings a tick's look at the forge to nodes, so that one look does for all.

A runner that can do so is a `Bearer`; with another runner each node looks at the forge itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Protocol, runtime_checkable

from sm.adapters.forge.protocol import Accounted
from sm.base.errors import SmError
from sm.base.issue_id import IssueId
from sm.issues.look import look_share
from sm.issues.look.forge_view import Snapshot
from sm.issues.look.look_share import LookShare
from sm.issues.look.tick_record import read_polled
from sm.issues.runners import Placement, Runner
from sm.sessions.project import Project

OFTEN_S = 120.0
"""Longest interval of ticks, in seconds, with which nodes wait for the next one: a rarer tick would
delay what they wait for."""
MARGIN_S = 15.0
"""Lateness of a tick that is allowed for, in seconds."""
WAIT_S = 20.0
"""Time that a node waits for a look that it has wished for, in seconds: a tick begins within a
second, and takes some on a busy machine, or with a slow forge."""

MakeShare = Callable[[Collection[IssueId]], LookShare]
"""Function that makes the share that concerns these issues."""


@runtime_checkable
class Bearer(Protocol):
    """Runner that brings looks to its nodes."""

    def bring(self, project: Project, placements: Sequence[Placement], make: MakeShare) -> None:
        """Bring each node what concerns its own sessions alone; a silent node gets nothing.

        A node that cannot use it looks by itself, so that is no error.
        """


def bring(
    project: Project,
    seen: Snapshot,
    runner: Runner,
    placements: Sequence[Placement],
    *,
    hears_wishes: bool,
    sharers: int,
) -> Iterator[str]:
    """Bring what was seen to these sessions; yield what was in the way.

    `sharers` is how many machines look at the forge by our account if none is brought anything.
    """
    forge = project.forge
    if not isinstance(runner, Bearer) or not isinstance(forge, Accounted):
        return
    find_account = cache(forge.find_account)
    lasts_s = find_lasting_s(project)
    wait_s = WAIT_S if hears_wishes else 0.0

    def make(issues: Collection[IssueId]) -> LookShare:
        return look_share.narrow(
            project.settings,
            seen,
            issues,
            account=find_account(),
            lasts_s=lasts_s,
            wait_s=wait_s,
            sharers=sharers,
        )

    try:
        runner.bring(project, placements, make)
    except SmError as error:
        yield f"nodes look at the forge by themselves: {error.message}"


def find_lasting_s(project: Project) -> float:
    """Return how long a node can rely on what this tick brings: two more have come by then."""
    settings = project.settings
    last = read_polled(project.directory)
    gap_s = max(settings.poll_interval_s, last.usual_gap_s if last else 0.0)
    return 2 * gap_s + MARGIN_S if gap_s <= OFTEN_S else settings.ci.poll_s
