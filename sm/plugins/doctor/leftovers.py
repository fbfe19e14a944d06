"""Leftovers and losses, by the table of supervision, with what is safe to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

from sm.adapters import procfs
from sm.adapters.procfs import Process
from sm.adapters.tmux import Tmux
from sm.base.errors import SmError, Unable
from sm.issues.look.snapshot import Snapshot, last_snapshot, look
from sm.issues.rules.leftover import Left, Thing
from sm.issues.rules.supervision import By, ProjectWords, Ruling, judge
from sm.issues.supervise.act import carry_out, foresee, rule
from sm.issues.supervise.find import Scene
from sm.plugins.doctor.machine import Installation
from sm.sessions import agent, agent_process, monitors, registry
from sm.sessions.project import Project
from sm.setup.finding import Finding, Fix, Level, fail, ok, warn
from sm.store import lock
from sm.store.paths import Root, SessionDir

THINGS = (
    *(Thing.RECORD, Thing.SESSION, Thing.ISSUE, Thing.TERMINAL, Thing.CLAIM),
    *(Thing.WORKTREE, Thing.PULL, Thing.BRANCH, Thing.LOCK),
)
"""Kinds of things, in the order of the output."""

BUSY_S = 60.0
"""Time that a repair waits for a tick of dev-poll to end, in seconds."""


def check_left(project: Project) -> Iterator[Finding]:
    """Look for everything that the table of supervision has a row for."""
    try:
        seen = look(project)
    except SmError as error:
        yield fail(error.message)
        seen = last_snapshot(project.root.project(project.name)) or Snapshot(0.0)
    sessions = registry.list_for(project)
    scene, is_whole = Scene(project, seen, sessions, thoroughly=True), True
    for found in rule(scene, *THINGS, by=tuple(By)):
        if isinstance(found, Unable):
            yield fail(str(found))
        elif found.told:
            is_whole &= found.left.thing is not Thing.SESSION
            make = partial(_repair, project, seen, found)
            yield _word(found, make, partial(foresee, scene, found))
    if is_whole:
        count = len(sessions)
        yield ok(f"sessions: {count}, each with its monitor" if count else "no sessions")


def check_left_running(here: Installation) -> Iterator[Finding]:
    """Look for processes of ended agents, and monitors of sessions that are gone."""
    for left, process in find_processes(here.root, here.tmux):
        if ruling := judge(left, ProjectWords("", "", "", "")):
            yield _word(ruling, partial(end_process, process))


def check_own_monitors(here: Installation) -> Iterator[Finding]:
    """Check that each session of `sm new` that goes on has its monitor."""
    for session in registry.list_all(here.root, report=lambda _: None):
        expected = not (session.has_matrix or session.is_over or session.is_being_begun)
        if expected and not monitors.is_watched(session):
            make = partial(_watch, session.name, here)
            fix = Fix(
                f"restart the monitor of {session.address}",
                f"restarted the monitor of {session.address}",
                make,
            )
            yield warn(f"session '{session.address}' has no monitor", _advise(fix), fix)


def _watch(name: str, here: Installation) -> str:
    session = registry.find(here.root, name)
    if session is None or session.is_over:
        return "it has ended meanwhile"
    monitors.ensure(session)
    return ""


def _word(ruling: Ruling, make: Callable[[], str], foreseen: Callable[[], str] = str) -> Finding:
    row = ruling.row
    level = Level.FAIL if row.thing is Thing.RECORD else Level.WARN
    if row.by in (By.PERSON, By.TICK):
        advice = ruling.command or "the next dev-poll does it: dev-poll --once"
        return Finding(level, ruling.told, "" if row.thing is Thing.RECORD else advice)
    fix = Fix(ruling.doing, ruling.done, make, ruling.command, foreseen)
    return Finding(level, ruling.told, _advise(fix), fix=fix)


def _advise(fix: Fix) -> str:
    return "sm doctor --fix" + (f", or by hand: {fix.by_hand}" if fix.by_hand else "")


def _repair(project: Project, seen: Snapshot, ruling: Ruling) -> str:
    """Repair while no tick is at work, provided the same thing is found again."""
    with lock.hold(project.directory.poll_lock, timeout_s=BUSY_S):
        scene = Scene(project, seen, registry.list_for(project), thoroughly=True)
        for again in rule(scene, ruling.left.thing, by=(ruling.row.by,)):
            if isinstance(again, Unable) or again.row is not ruling.row:
                continue
            if (again.left.name, again.left.issue) == (ruling.left.name, ruling.left.issue):
                return carry_out(scene, again).kept
    return "it is gone, or has changed meanwhile"


def find_processes(root: Root, tmux: Tmux) -> Iterator[tuple[Left, Process]]:
    """Yield what agents have left running, and monitors of sessions that are gone."""
    ours = {process.pid for process in procfs.find_ancestors(os.getpid())}
    living = {
        name
        for name, pane in tmux.panes().items()
        if agent_process.is_ours(pane, root.session(name)) and not pane.dead
    }
    for directory, process in agent_process.find_all_strays(root):
        name = directory.path.name
        if name not in living and process.pid not in ours and not _is_in_use(directory):
            yield _of(Thing.PROCESS, process, name), process
    for name, process in monitors.find_all(root):
        if not root.session(name).path.is_dir():
            yield _of(Thing.MONITOR, process, name), process


def _is_in_use(directory: SessionDir) -> bool:
    """Say whether its agent runs, or something is just done to the session."""
    known = agent.read_process(directory)
    if known is not None and procfs.is_running(known):
        return True
    return directory.path.is_dir() and lock.is_held(directory.lock)


def _of(thing: Thing, process: Process, session: str) -> Left:
    return Left(
        thing=thing,
        name=f"{process.pid} ({procfs.read_name(process)})",
        age_s=procfs.measure_age(process),
        detail=session,
        has_session=False,
    )


def end_process(process: Process) -> str:
    """End the process and what it has started; return why it was not, '' if it is gone.

    Raises:
        AgentError: it survived even KILL.

    """
    if not procfs.is_running(process):
        return "it has ended by itself"
    agent_process.end(process)
    return ""
