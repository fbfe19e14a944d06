"""The forge as it was last seen: one batch a project and interval, shared by all its sessions.

Whoever needs fresher facts first takes the batch for everybody, and wakes the sessions for
which something changed. So the number of requests does not grow with the number of sessions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from functools import cached_property

from msgspec import Struct

from sm.errors import StateError
from sm.forge import NO_CHECK, Check, CheckState, Issue, IssueState, PullRequest, PullState, Review
from sm.session import registry
from sm.store import lock
from sm.store.crash import crash_point
from sm.store.damage import read_rebuildable
from sm.store.files import (
    CLOCK_SLACK_S,
    SNAPSHOT_LIMIT,
    discard,
    just_before,
    write_atomic,
    write_json,
)
from sm.store.paths import ProjectDir
from sm.workflow.brief import brief_issue, brief_pull
from sm.workflow.context import Context


class Snapshot(Struct, frozen=True, dict=True):
    """One observation, begun at `taken_at`.

    `stamp` is the forge's own word for its state, `refs` are the remote's branches and claims.
    """

    taken_at: float
    stamp: str
    issues: tuple[Issue, ...] = ()
    pulls: tuple[PullRequest, ...] = ()
    refs: dict[str, str] = {}
    problems: tuple[str, ...] = ()

    def issue(self, number: int) -> Issue | None:
        """The issue, without its text; None if it is unknown."""
        return self._by_number.get(number)

    def pull(self, branch: str) -> PullRequest | None:
        """The newest pull request of `branch`."""
        return self._by_branch.get(branch)

    def head(self, branch: str) -> str:
        """The commit of `branch` on the remote, '' where there is no such branch."""
        return self.refs.get(f"refs/heads/{branch}", "")

    @cached_property
    def _by_number(self) -> dict[int, Issue]:
        return {issue.number: issue for issue in self.issues}

    @cached_property
    def _by_branch(self) -> dict[str, PullRequest]:
        """The newest of each branch: later ones take the place of earlier ones."""
        oldest_first = sorted(self.pulls, key=lambda pull: pull.number)
        return {pull.branch: pull for pull in oldest_first}


def snapshot(ctx: Context, *, newer_than: float = 0.0) -> Snapshot:
    """The forge as seen after `newer_than` (seconds since the epoch) and within the interval."""
    try:
        return _snapshot(ctx, newer_than)
    finally:
        discard(ctx.directory.turn)


def _snapshot(ctx: Context, newer_than: float) -> Snapshot:
    last = _usable(ctx, newer_than)
    if last is not None:
        return last
    with lock.hold(ctx.directory.snapshot_lock, timeout_s=120):
        last = _usable(ctx, newer_than)
        return last if last is not None else _take(ctx)


def last_snapshot(directory: ProjectDir) -> Snapshot | None:
    """What was seen last, however old it is; None also where the file was damaged."""
    return read_rebuildable(directory.snapshot, Snapshot, limit=SNAPSHOT_LIMIT)


def _usable(ctx: Context, newer_than: float) -> Snapshot | None:
    last = last_snapshot(ctx.directory)
    if last is None or last.taken_at < newer_than + CLOCK_SLACK_S:
        return None
    # One from the future is of before the clock was set back.
    if not 0 <= time.time() - last.taken_at < ctx.project.ci.poll_s:
        return None
    if last.stamp != ctx.forge.stamp():
        return None
    return last if _is_told(ctx, last) else None


def _is_told(ctx: Context, last: Snapshot) -> bool:
    """Whether those for whom that look has changed something were woken.

    The time of the next look is written after that; who looked may have died before.
    """
    try:
        return ctx.directory.due.stat().st_mtime > last.taken_at
    except FileNotFoundError:
        return False


def look(ctx: Context) -> Snapshot:
    """The forge as it is now; nothing is kept, nobody woken, no check started."""
    return _observe(ctx, ctx.forge.check)


def _take(ctx: Context) -> Snapshot:
    directory = ctx.directory
    before = last_snapshot(directory)
    if before is not None and not _is_told(ctx, before):
        before = None
    taken = _observe(ctx, ctx.forge.ensure_check)
    # What changes while we look must count as changed since.
    mtime_ns = just_before(taken.taken_at)
    write_json(directory.snapshot, taken, mtime_ns=mtime_ns, limit=SNAPSHOT_LIMIT)
    crash_point("forge:seen")
    _wake_changed(ctx, before, taken)
    write_atomic(directory.due, f"{math.ceil(taken.taken_at + ctx.project.ci.poll_s)}\n")
    return taken


def _observe(ctx: Context, check: Callable[[str], Check]) -> Snapshot:
    started = time.time()
    project = ctx.project
    stamp = ctx.forge.stamp()
    refs = ctx.git.ls_remote(
        project.remote,
        f"refs/heads/{project.primary_branch}",
        f"refs/heads/{project.branch_prefix}/*",
        "refs/sm/claims/*",
    )
    found, pulls, problems = ctx.forge.overview()
    issues, endless = _brief(ctx, found)
    return Snapshot(
        taken_at=started,
        stamp=stamp,
        issues=tuple(issues),
        pulls=tuple(_checked(pull, check) for pull in pulls),
        refs=refs,
        problems=(*problems, *endless),
    )


def _brief(ctx: Context, issues: Iterable[Issue]) -> tuple[list[Issue], list[str]]:
    """The issues without their texts, and what is wrong with those that are passed over."""
    labels = ctx.project.labels
    known = {labels.backlog, labels.in_progress, labels.blocked}
    found, problems = list[Issue](), list[str]()
    for issue in issues:
        try:
            found.append(brief_issue(issue, known))
        except StateError as error:
            problems.append(error.message)
    return found, problems


def _checked(pull: PullRequest, check: Callable[[str], Check]) -> PullRequest:
    return brief_pull(pull, check(pull.head) if pull.state is PullState.OPEN else NO_CHECK)


def _wake_changed(ctx: Context, before: Snapshot | None, after: Snapshot) -> None:
    if before is not None and _all_of(before) == _all_of(after):
        return  # mostly so, and then the sessions need not even be looked up
    for session in ctx.sessions():
        view = _view(after, session.issue, session.branch)
        if before is None or view != _view(before, session.issue, session.branch):
            registry.poke(session.dir)


def _view(seen: Snapshot, issue: int, branch: str) -> tuple[Issue | None, PullRequest | None, str]:
    return seen.issue(issue), seen.pull(branch), seen.head(branch)


def _all_of(seen: Snapshot) -> tuple[object, ...]:
    return seen.issues, seen.pulls, seen.refs


def full_review(ctx: Context, pull: PullRequest | None, review: Review | None) -> Review | None:
    """The review that decides, with its texts."""
    if pull is None or review is None:
        return None
    reviews = ctx.forge.pull(pull.number).reviews
    return next((whole for whole in reviews if whole.id == review.id), review)


def full_check(ctx: Context, pull: PullRequest | None) -> Check:
    """What CI says of the pull request's head, the failing log included."""
    return ctx.forge.check(pull.head) if pull else Check(CheckState.NONE)


def is_open(snapshot: Snapshot, number: int) -> bool:
    """Whether the issue is open; one that is not in sight counts as open."""
    issue = snapshot.issue(number)
    return issue is None or issue.state is IssueState.OPEN
