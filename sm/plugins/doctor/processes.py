"""Finds what runs for sessions that have ended, by a look at every process of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sm.adapters import procfs
from sm.adapters.procfs import Process
from sm.adapters.tmux import Tmux
from sm.issues.rules.found import Left, Thing
from sm.sessions import agent, agent_process, monitors, strays
from sm.store import lock
from sm.store.paths import Root, SessionDir


def find_processes(root: Root, tmux: Tmux) -> Iterator[tuple[Left, Process]]:
    """Yield what agents have left running, and monitors of sessions that are gone."""
    ours = {process.pid for process in procfs.find_ancestors(os.getpid())}
    living = {
        name
        for name, pane in tmux.panes().items()
        if agent_process.is_ours(pane, root.session(name)) and not pane.dead
    }
    for directory, process in strays.find_all_strays(root):
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
