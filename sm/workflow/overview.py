"""A project at a glance: its sessions, what is next, what waits, and what a person should know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec import Struct

from sm.errors import SmError
from sm.forge import Issue, IssueState
from sm.review import is_trusted
from sm.session import claim
from sm.session.registry import IssueSession
from sm.store import lock
from sm.store.paths import Root
from sm.workflow import kin, worktrees
from sm.workflow.context import Context
from sm.workflow.kin import Relative
from sm.workflow.poll import waits_for
from sm.workflow.snapshot import Snapshot
from sm.workflow.status import NOTHING_SEEN, StatusRow, rows_of, seen

T = TypeVar("T")

MISSED = 3
"""Intervals without a look at the forge after which no dev-poll seems to run."""


class Waiting(Struct, frozen=True):
    """An open issue that no session here works on; `why` it is not ready, '' where it is."""

    issue: int
    title: str
    why: str = ""

    @property
    def ready(self) -> bool:
        """Whether the next tick may pick it up."""
        return not self.why


class Kept(Struct, frozen=True):
    """A worktree that was kept when its session ended."""

    issue: int
    worktree: str


class Overview(Struct, frozen=True):
    """All of a project; `seen_at` is the last look at the forge, seconds since the epoch, or 0.

    `ad_hoc` are sessions of no project.
    """

    project: str
    seen_at: float
    sessions: tuple[StatusRow, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    kept: tuple[Kept, ...] = ()
    problems: tuple[str, ...] = ()
    hint: str = ""
    ad_hoc: tuple[Relative, ...] = ()


def no_project(root: Root) -> Overview | None:
    """The sessions that work for no project, under the name ''; None where there are none."""
    found = tuple(kin.ad_hoc(root))
    return Overview(project="", seen_at=0.0, ad_hoc=found) if found else None


def overview(ctx: Context, now: float) -> Overview:
    """The project as it is on disk; whatever cannot be read is among the problems."""
    problems: list[str] = []

    def report(error: SmError) -> None:
        problems.append(error.message)

    sessions = ctx.sessions(report)
    known = _or(report, lambda: seen(ctx), NOTHING_SEEN)
    problems.extend(known.problems)
    kept = _or(report, lambda: worktrees.kept(ctx, sessions), dict[int, str]())
    waits = tuple(_waiting(ctx, sessions, known))
    return Overview(
        project=ctx.project.name,
        seen_at=known.taken_at,
        sessions=tuple(rows_of(ctx, now, sessions, known)),
        waiting=waits,
        kept=tuple(Kept(issue, path) for issue, path in kept.items()),
        problems=tuple(problems),
        hint=_hint(ctx, now, known, busy=bool(sessions) or any(one.ready for one in waits)),
    )


def _or(report: Callable[[SmError], None], read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except SmError as error:
        report(error)
        return otherwise


def waiting(ctx: Context) -> list[Waiting]:
    """The backlog as it was last seen, in the order in which it is picked up."""
    return list(_waiting(ctx, ctx.sessions(), seen(ctx)))


def _waiting(ctx: Context, sessions: list[IssueSession], known: Snapshot) -> Iterator[Waiting]:
    labels = ctx.project.labels
    at_work = {session.issue for session in sessions}
    for issue in sorted(known.issues, key=lambda issue: issue.number):
        listed = labels.backlog in issue.labels or labels.blocked in issue.labels
        if issue.state is IssueState.OPEN and listed and issue.number not in at_work:
            yield Waiting(issue.number, issue.title, _why(ctx, known, issue))


def _why(ctx: Context, known: Snapshot, issue: Issue) -> str:
    """What keeps the issue from being picked up: the same as in `poll.ready`, in words."""
    labels = ctx.project.labels
    if labels.blocked in issue.labels:
        return f"labelled {labels.blocked}: a person has to look, and take that label off"
    if not is_trusted(issue.author, ctx.project.trusted):
        return f"filed by '{issue.author}', who is not trusted"
    if needed := waits_for(known, issue):
        return "depends on " + ", ".join(f"#{number}" for number in needed)
    if claim.is_held(issue.number, known.refs):
        return "claimed: worked on elsewhere, or about to be taken up again"
    return ""


def _hint(ctx: Context, now: float, known: Snapshot, *, busy: bool) -> str:
    if lock.is_held(ctx.root.project(ctx.project.name).poll_lock):
        return ""
    if not known.taken_at:
        return (
            "dev-poll has not looked yet: file issues with sm issue add, then run dev-poll --loop"
        )
    interval = max(ctx.project.poll_interval_s, ctx.project.ci.poll_s)
    if busy and now - known.taken_at > MISSED * interval:
        return "dev-poll does not seem to run: start it with dev-poll --loop, or from cron"
    return ""
