"""Forge as it was last seen: one batch a project and interval, shared by all its sessions.

The first process that needs fresher facts takes the batch for all, and wakes the sessions for which
something changed. So the number of requests does not grow with the number of sessions. If another
installation has placed sessions, it brings its looks, and they count as ours meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
from collections.abc import Iterable, Iterator

from sm.adapters.forge.model import (
    Batch,
    Check,
    CheckState,
    Issue,
    IssueState,
    PullRequest,
    PullState,
)
from sm.adapters.forge.protocol import list_signs
from sm.adapters.forge.spender import spend_for
from sm.base.clock import Deadline, is_within
from sm.base.errors import StateError
from sm.base.foreign import read_seconds
from sm.base.issue_id import IssueId
from sm.config.schema import ProjectSettings
from sm.issues.look import look_share, webhooks, wishes
from sm.issues.look.brief import brief_issue, brief_pull, cut
from sm.issues.look.forge_view import Snapshot as Snapshot
from sm.issues.look.look_share import Brought, LookShare
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import lock
from sm.store.damage import read_rebuildable
from sm.store.failpoint import crash_point
from sm.store.files import (
    CLOCK_SLACK_S,
    SNAPSHOT_LIMIT,
    backdate,
    discard,
    read_guarded,
    write_atomic,
    write_json,
)
from sm.store.paths import ProjectDir

WHOLE_S = 300.0
"""Seconds after which everything is read again, so that a missed change heals."""
AWAIT_S = 0.05
"""Pause between checks whether a look that was wished for has come, in seconds."""
ADOPT_S = 1.0
"""Time that a process which brings a look waits for one that is taken here, in seconds."""


def snapshot(
    project: Project, *, newer_than: float = 0.0, session: IssueSession | None = None
) -> Snapshot:
    """Return the forge as seen after `newer_than` (seconds since 1970) and within the interval.

    If a session is named, the snapshot shows what it needs: a look that was brought may not.
    """
    try:
        return _find_brought(project, newer_than, session) or _snapshot(project, newer_than)
    finally:
        discard(project.directory.turn)


def snapshot_as_wished(project: Project) -> Snapshot:
    """Return the forge as seen after a node's last wish, unless few requests are left now."""
    wished_at = wishes.read_wished_at(project.directory)
    last = _read_own(project.directory) if wished_at else None
    if last and is_within(project.forge.pause_s(), last.taken_at):
        wished_at = 0.0
    return snapshot(project, newer_than=wished_at)


def _find_brought(
    project: Project, newer_than: float, session: IssueSession | None
) -> Snapshot | None:
    """Return the look that was brought, if it will do, or the one that comes as we wish for it."""
    directory, now = project.root.project(project.name), time.time()
    came = look_share.read(directory)
    if came is None or not came.lasts(now):
        return None
    newer_than = max(newer_than, look_share.read_written_at(directory))
    if not _answers(directory, came, newer_than, session):
        if _usable(project, newer_than):
            return None
        came = _await_brought(project, came, newer_than, session)
    if came and _is_due(directory, now):
        _write_due_at(directory, came.until)
    return came.seen if came else None


def _answers(
    directory: ProjectDir, came: Brought, newer_than: float, session: IssueSession | None
) -> bool:
    return came.answers(newer_than, session) and look_share.is_newest(directory)


def _await_brought(
    project: Project, came: Brought, newer_than: float, session: IssueSession | None
) -> Brought | None:
    """Wish for a newer look, and wait for it; after a broken promise the share is not believed."""
    if not came.share.wait_s or not wishes.wish(project):
        return None
    directory, deadline = project.directory, Deadline(came.share.wait_s)
    while not deadline.is_over:
        time.sleep(AWAIT_S)
        last = look_share.read(directory)
        if last and last.came_at != came.came_at:
            came = last
            if _answers(directory, came, newer_than, session):
                return came
    look_share.end(directory, came)
    return None


def _snapshot(project: Project, newer_than: float) -> Snapshot:
    began = time.time()
    last = _usable(project, newer_than)
    if last is not None:
        # If the forge takes few requests, or was changed just before the last look, the next one
        # is due too early, and the monitors would look each second.
        _renew(project, began)
        if _is_due(project.directory, time.time()):
            _write_due(project, last)
        return last
    with lock.hold(project.directory.snapshot_lock, timeout_s=120):
        last = _usable(project, newer_than, waits_since=began)
        return last if last is not None else _take(project)


def whole_snapshot(project: Project) -> Snapshot:
    """Return a snapshot with all issues and pull requests, which may be a look of our own.

    For callers that ask about others' issues: a look that was brought shows only those of sessions.
    """
    last = last_snapshot(project.directory)
    return last if last and not last.is_part else _snapshot(project, 0.0)


def last_whole_snapshot(directory: ProjectDir) -> Snapshot | None:
    """Return the last look at everything, however old it is."""
    last = last_snapshot(directory)
    return _read_own(directory) if last and last.is_part else last


def last_snapshot(directory: ProjectDir) -> Snapshot | None:
    """Return the last look, however old it is; None also if the file was damaged."""
    if look_share.is_newest(directory) and (came := look_share.read(directory)):
        return came.seen
    return _read_own(directory)


def find_open_pull(session: IssueSession) -> PullRequest | None:
    """Return the session's pull request if the last look at the forge shows it open."""
    seen = last_snapshot(session.project.directory)
    pull = seen.pull(session.record.branch) if seen else None
    return pull if pull and pull.state is PullState.OPEN else None


def last_brought(directory: ProjectDir, session: IssueSession) -> Snapshot | None:
    """Return the last look that was brought for the session, if it is still believed, or None."""
    came = look_share.read(directory)
    return came.seen if came and came.lasts(time.time()) and came.is_about(session) else None


def _read_own(directory: ProjectDir) -> Snapshot | None:
    """Return the last look that was taken here."""
    return read_rebuildable(directory.snapshot, Snapshot, limit=SNAPSHOT_LIMIT)


def adopt(project: Project, share: LookShare) -> None:
    """Let a look that another installation has taken for our sessions count as ours for a while.

    Raises:
        UsageError: it shows another thing than a look from here would.
        TemporaryError: a look is being taken here.

    """
    directory = project.directory
    look_share.check(project, share)
    with lock.hold(directory.snapshot_lock, timeout_s=ADOPT_S):
        before = _read_told(project)
        came = look_share.keep(directory, share)
        crash_point("forge:brought")
        _wake_changed(project, before, came.seen)
        _write_due_at(directory, came.until)


def _usable(
    project: Project, newer_than: float, *, waits_since: float = math.inf
) -> Snapshot | None:
    """Return the last look, if it will do.

    A look that was begun after we began to wait suffices, whatever has changed since: one of our
    own would be as old by now. So all who wait for one share the next, instead of each taking
    another.
    """
    last = _read_own(project.directory)
    if last is None or last.taken_at < newer_than + CLOCK_SLACK_S:
        return None
    # A look from the future was taken before the clock was set back.
    if not is_within(find_interval(project, last), last.taken_at):
        return None
    if last.basis != _basis(project.settings):
        return None
    is_shared = last.taken_at >= waits_since + CLOCK_SLACK_S
    if not is_shared and project.forge.is_stale(last.batch):
        return None
    return last if _is_told(project, last) else None


def find_interval(project: Project, last: Snapshot) -> float:
    """Return the seconds from `last` to the next look: as configured, or more.

    More if few requests are left, or while webhooks tell of changes: then until all is read again.
    """
    settings = project.settings
    interval = max(settings.ci.poll_s, _find_pause_s(project))
    if settings.has_webhooks:
        heard = webhooks.read_heard_webhooks(project.root.project(project.name))
        if webhooks.can_wait(settings, heard, last.taken_at, last.pulls, time.time()):
            return max(interval, last.whole_at + WHOLE_S - last.taken_at)
    return interval


def _find_pause_s(project: Project) -> float:
    """Return the seconds between looks for the forge's limits, which other hosts may share."""
    pause_s = project.forge.pause_s()
    if not pause_s:  # mostly
        return 0.0
    return project.forge.pause_s(look_share.count_sharers(project.directory))


def find_longest_interval(settings: ProjectSettings) -> float:
    """Return the longest seconds between looks while dev-poll runs and limits do not matter.

    It is for display: the forge is not opened.
    """
    rare = WHOLE_S if settings.has_webhooks else 0.0
    return max(settings.poll_interval_s, settings.ci.poll_s, rare)


def _basis(project: ProjectSettings) -> str:
    """Return a word for the settings that decide what is kept of the forge."""
    by_label = (project.runners,) if project.runners else ()
    tracker = (project.tracker,) if project.tracker else ()
    basis = (project.labels, project.forge, *by_label, *tracker)
    return hashlib.sha256(repr(basis).encode()).hexdigest()[:16]


def _is_told(project: Project, last: Snapshot) -> bool:
    """Whether the sessions for which that look has changed something were woken.

    The time of the next look is written after that; the process that looked may have died before.
    """
    return _is_due_since(project.directory, last.taken_at)


def _is_due_since(directory: ProjectDir, at: float) -> bool:
    try:
        return directory.due.stat().st_mtime > at
    except FileNotFoundError:
        return False


def _read_told(project: Project) -> Snapshot | None:
    """Return the last look, ours or brought, if all sessions that it concerns were woken."""
    directory = project.directory
    if look_share.is_newest(directory) and (came := look_share.read(directory)):
        return came.seen if _is_due_since(directory, came.came_at) else None
    last = _read_own(directory)
    return last if last is not None and _is_told(project, last) else None


def look(project: Project) -> Snapshot:
    """Return the forge as it is now; keep nothing, wake no session, start no check."""
    return _observe(project, _read_own(project.root.project(project.name)), start_checks=False)


def _take(project: Project) -> Snapshot:
    directory, before = project.directory, _read_told(project)
    taken = _observe(project, _read_own(directory), start_checks=True)
    # What changes while we look must count as changed since.
    mtime_ns = backdate(taken.taken_at)
    write_json(directory.snapshot, taken, mtime_ns=mtime_ns, limit=SNAPSHOT_LIMIT)
    crash_point("forge:seen")
    _wake_changed(project, before, taken)
    _write_due(project, taken)
    return taken


def _write_due(project: Project, taken: Snapshot) -> None:
    _write_due_at(project.directory, taken.taken_at + find_interval(project, taken))


def _write_due_at(directory: ProjectDir, at: float) -> None:
    # The time of the kernel's own stamps lags behind by some milliseconds, and so might be before.
    write_atomic(directory.due, f"{math.ceil(at)}\n", mtime_ns=time.time_ns())


def _is_due(directory: ProjectDir, now: float) -> bool:
    said = (read_guarded(directory.due, 100) or b"").decode("ascii", "replace").strip()
    due = read_seconds(said)
    return due is not None and due <= now


def _renew(project: Project, at: float) -> None:
    """Date the last look no earlier than the forge's sign, as nothing had changed by then."""
    seen, mtime_ns = project.directory.snapshot, backdate(at)
    with contextlib.suppress(FileNotFoundError):
        signs = list_signs(project.forge)[:1]
        if any(sign.stat().st_mtime_ns > seen.stat().st_mtime_ns for sign in signs):
            os.utime(seen, ns=(mtime_ns, mtime_ns))


def look_for_webhook(project: Project) -> None:
    """Look at the forge because it has told of a change; sessions are woken as by any look.

    The sign wakes dev-poll, too, and makes the last look stale for every process, so that one of
    them looks if this one dies. While the forge takes few requests, the look is put off until it
    takes more.
    """
    last = _read_own(project.directory)
    if last and time.time() - last.taken_at < project.forge.pause_s():
        _write_due(project, last)
        return
    write_atomic(project.directory.forge_written, "")
    snapshot(project, newer_than=time.time())


def _observe(project: Project, last: Snapshot | None, *, start_checks: bool) -> Snapshot:
    """Observe the forge now. `last` is on disk: an observation continues only from there."""
    started = time.time()
    settings = project.settings
    since = _since(settings, last, started)
    with spend_for(""):
        batch = project.forge.observe(since, start_checks=start_checks)
    # After the forge: its validators must not be newer than the refs.
    refs = project.git.ls_remote(
        settings.remote,
        f"refs/heads/{settings.primary_branch}",
        f"refs/heads/{settings.branch_prefix}/*",
        *_list_own_branches(project),
        "refs/sm/claims/*",
    )
    issues, endless = _brief(project, batch.issues)
    return Snapshot(
        taken_at=started,
        issues=tuple(issues),
        pulls=tuple(map(brief_pull, batch.pulls)),
        refs=refs,
        problems=tuple(dict.fromkeys((*batch.problems, *endless))),
        writers=tuple(map(cut, batch.writers)),
        validators=batch.validators,
        whole_at=last.whole_at if since and last else started,
        basis=_basis(settings),
    )


def _list_own_branches(project: Project) -> Iterator[str]:
    """Yield the branches of sessions that were begun under other settings."""
    for session in registry.list_for(project):
        record, settings = session.record, project.settings
        for own, now in (
            (record.branch, settings.branch(session.issue)),
            (record.base, settings.primary_branch),
        ):
            if own != now:
                yield f"refs/heads/{own}"


def _since(project: ProjectSettings, last: Snapshot | None, now: float) -> Batch | None:
    """Return what to continue from; None if everything is to be read again."""
    if last is None or last.basis != _basis(project):
        return None
    return last.batch if 0 <= now - last.whole_at < WHOLE_S else None


def _brief(project: Project, issues: Iterable[Issue]) -> tuple[list[Issue], list[str]]:
    """Return the issues without their texts, and what is wrong with those that are passed over."""
    labels = project.settings.labels
    known = {labels.backlog, labels.in_progress, labels.blocked, *project.settings.runners}
    found, problems = list[Issue](), list[str]()
    for issue in issues:
        try:
            found.append(brief_issue(issue, known))
        except StateError as error:
            problems.append(error.message)
    return found, problems


def _wake_changed(project: Project, before: Snapshot | None, after: Snapshot) -> None:
    if before is not None and _all_of(before) == _all_of(after):
        return  # mostly so, and then the sessions need not even be looked up
    for session in registry.list_for(project):
        view = _view(after, session.issue, session.record.branch)
        if before is None or view != _view(before, session.issue, session.record.branch):
            registry.poke(session.dir)


def _view(
    seen: Snapshot, issue: IssueId, branch: str
) -> tuple[Issue | None, PullRequest | None, str]:
    return seen.issue(issue), seen.pull(branch), seen.head(branch)


def _all_of(seen: Snapshot) -> tuple[object, ...]:
    return seen.issues, seen.pulls, seen.refs


def full_check(project: Project, pull: PullRequest | None) -> Check:
    """Return what CI says of the pull request's head, with the failing log."""
    return project.forge.checks.read(pull.head) if pull else Check(CheckState.NONE)


def is_open(snapshot: Snapshot, number: IssueId) -> bool:
    """Whether the issue is open; one that is not in sight counts as open."""
    issue = snapshot.issue(number)
    return issue is None or issue.state is IssueState.OPEN
