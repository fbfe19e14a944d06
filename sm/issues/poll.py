"""Tick of dev-poll: looks at the forge, keeps sessions alive, starts new work."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sm.adapters.forge import protocol
from sm.adapters.forge.model import Issue
from sm.base.clock import Deadline
from sm.base.errors import SmError, Unable
from sm.base.issue_id import spell
from sm.issues import meters, runners
from sm.issues.act.effects import NotNowError
from sm.issues.dispatch import Away, survey
from sm.issues.look import backlog
from sm.issues.look.backlog import list_ready
from sm.issues.look.issue_text import UntrustedTextError
from sm.issues.look.room import list_shortages, note_shortages
from sm.issues.look.snapshot import Snapshot, look, snapshot_as_wished
from sm.issues.look.tick_record import keep_outcome
from sm.issues.rules.leftover import Thing
from sm.issues.rules.supervision import BY_NAME
from sm.issues.start import PausedError, SettledError, TakenError, start
from sm.issues.supervise.act import AFTER, BEFORE, DueIssue, tend
from sm.issues.supervise.find import Scene
from sm.issues.work import claim, leftovers, slots
from sm.sessions import pause, registry, terminal
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events, lock
from sm.store.paths import name_session
from sm.store.repair import repair

if TYPE_CHECKING:
    from concurrent.futures import Future

TAKE_UP = BY_NAME["claim-lost"].doing
"""Words for taking up our own issue without anything on record."""
AT_ONCE = 4
"""Greatest number of starts that run side by side."""
PICK_UP_S = 20.0
"""Seconds for which a tick takes issues up as slots become free; then it tends all sessions
again."""


def tick(
    project: Project, *, dry_run: bool = False, takes_up: bool = True, loops: bool = False
) -> Iterator[str]:
    """Do what is due for the project; yield a line, or `Unable`, for each thing.

    With `dry_run` it yields what it would do, and changes nothing. Without `takes_up` it looks
    after what is there, and takes up nothing new. `loops`: the next one comes when something of
    `list_signs` has changed.
    """
    if dry_run:
        yield from _tend(project, look(project), dry_run=True)
        return
    root = project.root
    repair(root, root.project(project.name))
    # Only now: what holds the sessions may just have been put right.
    repair(root, *map(root.session, registry.list_session_names(root)))
    with lock.try_hold(project.directory.poll_lock) as ours:
        if not ours:
            yield "another dev-poll is at work on it"
            return
        done = _tick(project, takes_up=takes_up, loops=loops)
        yield from keep_outcome(project.directory, done)


def _tick(project: Project, *, takes_up: bool, loops: bool) -> Iterator[str]:
    yield from leftovers.clear_locks(project)
    seen = snapshot_as_wished(project)
    yield from _tend(project, seen, dry_run=False, takes_up=takes_up, loops=loops)


def list_signs(project: Project) -> list[Path]:
    """Return the files whose change may bring work for a tick; none where no issue may begin."""
    settings = project.settings
    if runners.list_runners(settings):
        return [*protocol.list_signs(project.forge), project.directory.look_wanted]
    if not settings.max_sessions or len(registry.list_for(project)) >= settings.open_limit:
        return []
    if not slots.count_free(project):
        return [project.directory.slot_freed]
    return list(protocol.list_signs(project.forge))


def _tend(
    project: Project,
    seen: Snapshot,
    *,
    dry_run: bool,
    takes_up: bool = True,
    loops: bool = False,
) -> Iterator[str]:
    yield from seen.problems
    damaged: list[SmError] = []
    sessions = registry.list_for(project, damaged.append)
    yield from (error.message for error in damaged)
    scene = Scene(project, seen, sessions)

    def begin(due: Sequence[DueIssue]) -> Iterator[str]:
        return _take_up_again(scene, due, dry_run=dry_run)

    away = survey(project, seen, hears_wishes=loops)
    if found := scene.pauses.find(project.name):
        yield found.sentence
        for one in away:
            yield from one.tend(scene.is_paused, dry_run=dry_run)
        yield from _finish(away, dry_run=dry_run)
        # One of the monitors has the forge looked at.
        yield from tend(scene, Thing.SESSION, start=begin, dry_run=dry_run)
        return
    if not dry_run:
        slots.correct(project)
    yield from tend(scene, *BEFORE, start=begin, dry_run=dry_run)
    for one in away:
        yield from one.tend(scene.is_paused, dry_run=dry_run)
    if takes_up:
        yield from _pick_up(project, seen, sessions, away, dry_run=dry_run)
    yield from _finish(away, dry_run=dry_run)
    yield from tend(scene, *AFTER, start=begin, dry_run=dry_run)
    if not dry_run:
        terminal.prune_logs(project.root, project.config.logs)


def _finish(away: Iterable[Away], *, dry_run: bool) -> Iterator[str]:
    for one in () if dry_run else away:
        yield from one.finish()


def _take_up_again(scene: Scene, due: Sequence[DueIssue], *, dry_run: bool) -> Iterator[str]:
    """Take up again: a living agent is adopted at once; another begins again, and needs a slot."""
    project, admitted = scene.project, list[DueIssue]()
    for one in due:
        name = name_session(project.name, one.issue.number)
        is_adopted = one.what != TAKE_UP or name in (scene.panes or project.tmux.panes())
        if dry_run or is_adopted or slots.take_for_new(project, name):
            admitted.append(one)
        else:
            yield f"{spell(one.issue.number)} {one.issue.title} waits for a free slot"
    yield from _start_all(project, admitted, dry_run=dry_run)


def _pick_up(
    project: Project,
    seen: Snapshot,
    sessions: list[IssueSession],
    away: Iterable[Away],
    *,
    dry_run: bool,
) -> Iterator[str]:
    """Start the oldest ready issues, as many as there are free slots, here or elsewhere."""
    known, paused = {session.issue for session in sessions}, pause.read(project.root)
    waiting = [
        issue
        for issue in list_ready(project, seen)
        if issue.number not in known
        and not claim.is_held(issue.number, seen.refs)
        and not paused.find(project.name, name_session(project.name, issue.number))
    ]
    waiting = backlog.pass_over_doubtful(project.directory, waiting, keep=not dry_run)
    for one in away:
        waiting, others = one.divide(waiting)
        yield from _place(project, one, others, dry_run=dry_run)
    waiting, unplaced = _divide(project, waiting)
    yield from (
        Unable(f"cannot place {spell(one.number)} {one.title}: {why}") for one, why in unplaced
    )
    short = list_shortages(project) if dry_run else note_shortages(project)
    if waiting and short:
        yield from (f"nothing new is taken up: {one.shortly}" for one in short)
    if short or not waiting:
        return
    if limit := meters.find_objection(project):
        yield f"nothing new is taken up: {meters.describe(limit, time.time())}"
        return
    # Counted again, because some were resumed.
    room = max(0, project.settings.open_limit - len(registry.list_for(project)))
    if dry_run:
        admitted = iter(waiting[: min(room, slots.count_free(project))])
    else:
        admitted = _admit(project, waiting[:room])
    yield from _start_all(project, (DueIssue(one, "pick up") for one in admitted), dry_run=dry_run)


def _divide(project: Project, waiting: list[Issue]) -> tuple[list[Issue], list[tuple[Issue, str]]]:
    """Return the issues for this machine, and those that no plugin takes, with the reason."""
    here, unplaced = list[Issue](), list[tuple[Issue, str]]()
    for issue in waiting:
        runner = runners.choose_runner(project.settings, issue.labels)
        if runner == runners.LOCAL:
            here.append(issue)
        else:
            unplaced.append((issue, f"no plugin has sessions run by '{runner}'"))
    return here, unplaced


def _place(project: Project, away: Away, waiting: list[Issue], *, dry_run: bool) -> Iterator[str]:
    """Place the oldest issues for elsewhere, as many as there are free places."""
    if not waiting:
        return
    if limit := meters.find_objection(project, here=False):
        yield f"nothing new is placed: {meters.describe(limit, time.time())}"
        return
    for issue in waiting:
        try:
            yield from away.place(issue, dry_run=dry_run)
        except SmError as error:
            yield Unable(f"cannot place {spell(issue.number)} {issue.title}: {error.message}")


def _admit(project: Project, waiting: list[Issue]) -> Iterator[Issue]:
    """Yield, for a while, the issues for which there is a slot when their turn has come."""
    deadline = Deadline(PICK_UP_S)
    for issue in waiting:
        if deadline.is_over or meters.find_objection(project):
            return
        if not slots.take_for_new(project, name_session(project.name, issue.number)):
            return
        yield issue


def _start_all(project: Project, due: Iterable[DueIssue], *, dry_run: bool) -> Iterator[str]:
    """Start these issues, some side by side; yield a line for each, in their order.

    The next one of `due` is asked for only when it can begin.
    """
    if dry_run:
        yield from (f"would {_line(one)}" for one in due)
        return
    # Starts are mostly git and tmux, which keep a processor busy. A server is asked for one thing
    # after another, as GitHub wants it (docs.github.com, "Best practices for using the REST API":
    # avoid concurrent requests).
    is_elsewhere = project.settings.forge.is_elsewhere
    at_once = 1 if is_elsewhere else min(AT_ONCE, len(os.sched_getaffinity(0)))
    if at_once > 1:
        yield from _start_side_by_side(project, due, at_once)
        return
    for one in due:
        yield _tell_start(project, one, partial(start, project, one.issue))


def _start_side_by_side(project: Project, due: Iterable[DueIssue], at_once: int) -> Iterator[str]:
    """Start them side by side; yield a line when its start and those before it are over."""
    # Loaded here, as a look at the status does without.
    from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

    with ThreadPoolExecutor(at_once) as pool:
        begun: deque[tuple[DueIssue, Future[IssueSession]]] = deque()
        for one in due:
            # A project's open objects, such as its forge, are for one thread.
            own = Project(project.config, project.settings)
            begun.append((one, pool.submit(start, own, one.issue)))
            while len(running := [each for _, each in begun if not each.done()]) >= at_once:
                wait(running, return_when=FIRST_COMPLETED)
            while begun and begun[0][1].done():
                yield _tell_first(project, begun)
        while begun:
            yield _tell_first(project, begun)


def _tell_first(project: Project, begun: deque[tuple[DueIssue, Future[IssueSession]]]) -> str:
    one, future = begun.popleft()
    return _tell_start(project, one, future.result)


def _tell_start(project: Project, one: DueIssue, begin: Callable[[], object]) -> str:
    """Return the line about a start, or `Unable`."""
    name = name_session(project.name, one.issue.number)
    try:
        begin()
    except UntrustedTextError as error:
        return backlog.tell_doubt(project, one.issue, one.what, error.message)
    except (SettledError, TakenError, PausedError, NotNowError) as error:
        return error.message
    except SmError as error:
        project.record(events.Problem(session=name, text=error.message))
        return Unable(f"cannot {_line(one)}: {error.message}")
    return _line(one)


def _line(one: DueIssue) -> str:
    return f"{one.what} {spell(one.issue.number)} {one.issue.title}"
