"""One tick of dev-poll: looks at the forge, keeps sessions alive, starts new work."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sm.adapters.forge import protocol
from sm.adapters.forge.model import Issue, IssueState
from sm.base.clock import Deadline
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

if TYPE_CHECKING:
    from concurrent.futures import Future

AT_ONCE = 4
"""Starts that run side by side at the most."""
PICK_UP_S = 20.0
"""So long a tick takes issues up, as slots become free; then it looks after all sessions again."""


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
    yield from _take_up_again(project, lost, panes, dry_run=dry_run)


def _take_up_again(
    project: Project, lost: list[Issue], panes: Container[str], *, dry_run: bool
) -> Iterator[str]:
    """An agent that lives is adopted at once; another begins anew, and that needs a slot."""
    due: list[Due] = []
    for issue in lost:
        name = name_session(project.name, issue.number)
        if not is_workable(project.settings, issue):
            due.append(Due(issue, "let go of"))
        elif dry_run or name in panes or slots.take_for_new(project, name):
            due.append(Due(issue, "take up again"))
        else:
            yield f"#{issue.number} {issue.title} waits for a free slot"
    yield from _start_all(project, due, dry_run=dry_run)


def _keep_session(
    seen: Snapshot, session: IssueSession, panes: Container[str], *, dry_run: bool
) -> Iterator[str]:
    if not is_started(session):
        # One that is not in sight may have been deleted: the start asks the forge.
        issue = seen.issue(session.issue) or taken.make_issue(session, None)
        due = [Due(issue, "finish the start of")]
        yield from _start_all(session.project, due, dry_run=dry_run)
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
    # Counted anew, because some were resumed.
    room = max(0, project.settings.open_limit - len(registry.list_for(project)))
    if dry_run:
        admitted = iter(waiting[: min(room, slots.count_free(project))])
    else:
        admitted = _admit(project, waiting[:room])
    yield from _start_all(project, (Due(one, "pick up") for one in admitted), dry_run=dry_run)


def _admit(project: Project, waiting: list[Issue]) -> Iterator[Issue]:
    """The issues for which there is a slot when their turn has come, for a while."""
    deadline = Deadline(PICK_UP_S)
    for issue in waiting:
        if deadline.is_over:
            return
        if not slots.take_for_new(project, name_session(project.name, issue.number)):
            return
        yield issue


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


class Due(NamedTuple):
    """An issue that is to be started, and what people call that."""

    issue: Issue
    what: str


def _start_all(project: Project, due: Iterable[Due], *, dry_run: bool) -> Iterator[str]:
    """Start these issues, some side by side; yield a line for each, in their order.

    Of `due` the next one is asked for only when it can begin.
    """
    if dry_run:
        yield from (f"would {_line(one)}" for one in due)
        return
    at_once = _count_at_once(project)
    if at_once > 1:
        yield from _start_side_by_side(project, due, at_once)
        return
    for one in due:
        yield _tell_start(project, one, partial(start, project, one.issue))


def _start_side_by_side(project: Project, due: Iterable[Due], at_once: int) -> Iterator[str]:
    """A line is yielded when its start and those before it are over."""
    # Which a look at the status does without.
    from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

    with ThreadPoolExecutor(at_once) as pool:
        begun: deque[tuple[Due, Future[IssueSession]]] = deque()
        for one in due:
            # What a project has opened, such as its forge, is for one thread.
            own = Project(project.config, project.settings)
            begun.append((one, pool.submit(start, own, one.issue)))
            while len(running := [each for _, each in begun if not each.done()]) >= at_once:
                wait(running, return_when=FIRST_COMPLETED)
            while begun and begun[0][1].done():
                yield _tell_first(project, begun)
        while begun:
            yield _tell_first(project, begun)


def _count_at_once(project: Project) -> int:
    """How many starts run side by side: most of one is git and tmux, which a processor is kept by.

    A server is asked for one thing after another, as GitHub wants it (docs.github.com, "Best
    practices for using the REST API": avoid concurrent requests).
    """
    if project.settings.forge.is_elsewhere:
        return 1
    return min(AT_ONCE, len(os.sched_getaffinity(0)))


def _tell_first(project: Project, begun: deque[tuple[Due, Future[IssueSession]]]) -> str:
    one, future = begun.popleft()
    return _tell_start(project, one, future.result)


def _tell_start(project: Project, one: Due, begin: Callable[[], object]) -> str:
    """The line about a start, or `Unable`."""
    name = name_session(project.name, one.issue.number)
    try:
        begin()
    except UntrustedTextError as error:
        doubts.note(project.directory, one.issue, error.message)
        journal.record_once(project.root.journal, events.Problem(session=name, text=error.message))
        return f"did not {one.what} {error.message}"
    except (SettledError, TakenError, NotNowError) as error:
        return error.message
    except SmError as error:
        project.record(events.Problem(session=name, text=error.message))
        return Unable(f"cannot {_line(one)}: {error.message}")
    return _line(one)


def _line(one: Due) -> str:
    return f"{one.what} #{one.issue.number} {one.issue.title}"


def _would(dry_run: bool) -> str:
    return "would " if dry_run else ""
