"""One tick of dev-poll: looks at the forge, keeps sessions alive, starts new work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sm.adapters.forge import protocol
from sm.adapters.forge.model import Issue, IssueState
from sm.base.errors import SmError
from sm.issues.act.effects import NotNowError
from sm.issues.look import doubts
from sm.issues.look.polled import keep_outcome
from sm.issues.look.room import list_shortages, note_shortages
from sm.issues.look.snapshot import Snapshot, look, snapshot
from sm.issues.look.taken import UntrustedTextError
from sm.issues.rules.supervision import Thing
from sm.issues.start import PausedError, SettledError, TakenError, is_workable, start
from sm.issues.supervise.act import AFTER, BEFORE, Due, tend
from sm.issues.supervise.find import Scene
from sm.issues.work import claim, locks
from sm.sessions import pause, registry, terminal_log
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
        yield from keep_outcome(project.directory, _tick(project))


def _tick(project: Project) -> Iterator[str]:
    yield from locks.clear(project)
    yield from _tend(project, snapshot(project), dry_run=False)


def list_signs(project: Project) -> list[Path]:
    """Return the files whose change may bring work for a tick; none where no slot is free."""
    if len(registry.list_for(project)) >= project.settings.max_sessions:
        return []
    return list(protocol.list_signs(project.forge))


def _put_in_order(project: Project) -> None:
    repair(project.root, project.root.project(project.name))
    repair(project.root, *map(project.root.session, registry.list_session_names(project.root)))


def _tend(project: Project, seen: Snapshot, *, dry_run: bool) -> Iterator[str]:
    yield from seen.problems
    damaged: list[SmError] = []
    sessions = registry.list_for(project, damaged.append)
    yield from (error.message for error in damaged)
    scene = Scene(project, seen, sessions)

    def begin(due: Sequence[Due]) -> Iterator[str]:
        for one in due:
            yield from _start(project, one.issue, one.what, dry_run)

    if found := scene.pauses.find(project.name):
        yield found.sentence
        # One of the monitors has the forge looked at.
        yield from tend(scene, Thing.SESSION, start=begin, dry_run=dry_run)
        return
    yield from tend(scene, *BEFORE, start=begin, dry_run=dry_run)
    yield from _pick_up(project, seen, sessions, dry_run=dry_run)
    yield from tend(scene, *AFTER, start=begin, dry_run=dry_run)
    if not dry_run:
        terminal_log.prune(project.root, project.config.logs)


def _pick_up(
    project: Project, seen: Snapshot, sessions: list[IssueSession], *, dry_run: bool
) -> Iterator[str]:
    """The oldest issues that are ready, up to the maximum of sessions."""
    known, paused = {session.issue for session in sessions}, pause.read(project.root)
    waiting = [
        issue
        for issue in list_ready(project, seen)
        if issue.number not in known
        and not claim.is_held(issue.number, seen.refs)
        and not paused.find(project.name, name_session(project.name, issue.number))
    ]
    waiting = doubts.pass_over(project.directory, waiting, keep=not dry_run)
    short = list_shortages(project) if dry_run else note_shortages(project)
    if waiting and short:
        yield from (f"nothing new is taken up: {one.shortly}" for one in short)
    if short or not waiting:
        return
    # Counted again, because some were resumed.
    free = project.settings.max_sessions - len(registry.list_for(project))
    for issue in waiting[: max(free, 0)]:
        yield from _start(project, issue, "pick up", dry_run)


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
    except (SettledError, TakenError, PausedError, NotNowError) as error:
        yield error.message
    except SmError as error:
        name = name_session(project.name, issue.number)
        project.record(events.Problem(session=name, text=error.message))
        yield Unable(f"cannot {line}: {error.message}")
    else:
        yield line
