"""One tick of dev-poll: looks at the forge, keeps sessions alive, starts new work."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

from sm.adapters.forge import protocol
from sm.adapters.forge.model import Issue, IssueState
from sm.base.errors import SmError, StateError
from sm.issues.act.effects import NotNowError
from sm.issues.look import doubts, taken
from sm.issues.look.snapshot import Snapshot, look, snapshot
from sm.issues.look.taken import UntrustedTextError
from sm.issues.start import SettledError, TakenError, is_started, is_workable, put_on_record, start
from sm.issues.work import claim, kept_worktrees, locks, remnants, slots
from sm.sessions import monitors, registry, terminal_log
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.sessions.undone import Unable
from sm.store import events, journal, lock
from sm.store.paths import name_session
from sm.store.repair import repair


def tick(project: Project, *, dry_run: bool = False) -> Iterator[str]:
    """Do what is due for the project; yield a line, or `Unable`, for each thing.

    With `dry_run` it yields what it would do, and changes nothing.
    """
    if dry_run:
        yield from _tend(project, look(project), dry_run=True)
        return
    _put_in_order(project)
    with lock.try_hold(project.directory.poll_lock) as ours:
        if not ours:
            yield "another dev-poll is at work on it"
            return
        yield from locks.clear(project)
        yield from _tend(project, snapshot(project), dry_run=False)


def list_signs(project: Project) -> list[Path]:
    """Return the files whose change may bring work for a tick; none where no issue may begin."""
    settings = project.settings
    if not settings.max_sessions or len(registry.list_for(project)) >= settings.open_limit:
        return []
    if not slots.count_free(project):
        return [project.directory.slot_freed]
    return list(protocol.list_signs(project.forge))


def _put_in_order(project: Project) -> None:
    repair(project.root, project.root.project(project.name))
    repair(project.root, *map(project.root.session, registry.list_session_names(project.root)))


def _tend(project: Project, seen: Snapshot, *, dry_run: bool) -> Iterator[str]:
    yield from seen.problems
    damaged: list[SmError] = []
    sessions = registry.list_for(project, damaged.append)
    yield from (error.message for error in damaged)
    yield from _rebuild(project, seen, dry_run=dry_run)
    if not dry_run:
        slots.correct(project)
    yield from _keep_alive(project, seen, sessions, dry_run=dry_run)
    yield from _pick_up(project, seen, sessions, dry_run=dry_run)
    if not dry_run:
        yield from kept_worktrees.sweep(project, seen, sessions)
        yield from remnants.sweep(project, seen, sessions)
        terminal_log.prune(project.root, project.config.logs)


def _keep_alive(
    project: Project, seen: Snapshot, sessions: list[IssueSession], *, dry_run: bool
) -> Iterator[str]:
    """Sessions whose start was interrupted, whose state was lost, whose monitor or pane died."""
    lost = _find_lost(project, seen, sessions)
    panes = project.tmux.panes() if sessions or lost else {}
    for session in sessions:
        try:
            yield from _keep_session(seen, session, panes, dry_run=dry_run)
        except StateError as error:  # only its files are damaged: the others go on
            yield Unable(f"cannot look after #{session.issue}: {error.message}")
    for issue in lost:
        name = name_session(project.name, issue.number)
        if not is_workable(project.settings, issue):
            yield from _start(project, issue, "let go of", dry_run)
        elif dry_run or name in panes or slots.take_for_new(project, name):
            yield from _start(project, issue, "take up again", dry_run)
        else:
            yield f"#{issue.number} {issue.title} waits for a free slot"


def _keep_session(
    seen: Snapshot, session: IssueSession, panes: Container[str], *, dry_run: bool
) -> Iterator[str]:
    if not is_started(session):
        # One that is not in sight may have been deleted: the start asks the forge.
        issue = seen.issue(session.issue) or taken.make_issue(session, None)
        yield from _start(session.project, issue, "finish the start of", dry_run)
    elif not monitors.is_watched(session):
        yield f"{_would(dry_run)}restart the monitor of #{session.issue}"
        if not dry_run:
            monitors.ensure(session)
    elif session.name not in panes:
        registry.poke(session.dir)


def _rebuild(project: Project, seen: Snapshot, *, dry_run: bool) -> Iterator[str]:
    """Make damaged records of sessions anew: all that is in them, project and issue tell."""
    damaged = registry.list_damaged(project.root)
    for issue in seen.issues if damaged else ():
        name = name_session(project.name, issue.number)
        if name in damaged:
            yield f"{_would(dry_run)}make the record of {name} anew"
            if not dry_run:
                monitors.ensure(put_on_record(project, issue))


def _find_lost(project: Project, seen: Snapshot, sessions: list[IssueSession]) -> list[Issue]:
    """Issues that we hold the claim of, but know nothing about any more."""
    known = {session.issue for session in sessions}
    return [
        issue
        for issue in seen.issues
        if issue.number not in known
        and claim.is_held(issue.number, seen.refs)
        and claim.is_ours(project.git, project.settings, issue.number, project.root, seen.refs)
    ]


def _pick_up(
    project: Project, seen: Snapshot, sessions: list[IssueSession], *, dry_run: bool
) -> Iterator[str]:
    """The oldest issues that are ready, as many as there are free slots."""
    known = {session.issue for session in sessions}
    waiting = [
        issue
        for issue in list_ready(project, seen)
        if issue.number not in known and not claim.is_held(issue.number, seen.refs)
    ]
    waiting = doubts.pass_over(project.directory, waiting, keep=not dry_run)
    if not waiting:
        return
    for issue in waiting[: _count_room(project)]:
        if dry_run or slots.take_for_new(project, name_session(project.name, issue.number)):
            yield from _start(project, issue, "pick up", dry_run)


def _count_room(project: Project) -> int:
    """How many issues may be taken up. Counted anew, because some were resumed."""
    left = project.settings.open_limit - len(registry.list_for(project))
    return min(max(0, left), slots.count_free(project))


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
        ),
        key=lambda issue: issue.number,
    )


def list_blockers(seen: Snapshot, issue: Issue) -> list[int]:
    """Return the open issues that `issue` depends on."""

    def is_closed(number: int) -> bool:
        found = seen.issue(number)
        return found is not None and found.state is IssueState.CLOSED

    return [number for number in issue.dependencies() if not is_closed(number)]


def _start(project: Project, issue: Issue, what: str, dry_run: bool) -> Iterator[str]:
    line = f"{what} #{issue.number} {issue.title}"
    if dry_run:
        yield f"would {line}"
        return
    try:
        start(project, issue)
    except UntrustedTextError as error:
        doubts.note(project.directory, issue, error.message)
        name = name_session(project.name, issue.number)
        problem = events.Problem(session=name, text=error.message)
        journal.record_once(project.root.journal, problem)
        yield f"did not {what} {error.message}"
    except (SettledError, TakenError, NotNowError) as error:
        yield error.message
    except SmError as error:
        name = name_session(project.name, issue.number)
        project.record(events.Problem(session=name, text=error.message))
        yield Unable(f"cannot {line}: {error.message}")
    else:
        yield line


def _would(dry_run: bool) -> str:
    return "would " if dry_run else ""
