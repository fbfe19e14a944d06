"""The agent of a session: launched as its pane's own program, found again, stopped whole."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from sm.adapters import proc
from sm.adapters.proc import Process
from sm.adapters.tmux import Pane, SessionExistsError, Tmux
from sm.errors import SmError, StateError
from sm.foreign import read_number
from sm.session.launchfiles import Launch, write_launch_files
from sm.session.registry import Session
from sm.shellroot import shell_root
from sm.store import journal
from sm.store.crash import crash_point
from sm.store.damage import read_rebuildable
from sm.store.files import append_line, open_guarded, read_guarded, write_atomic, write_json
from sm.store.paths import SessionDir

START_S = 15.0
STOP_GRACE_S = 2.0
"""How long each of hang-up, TERM and KILL is given before the next."""
LOOK_S = 0.02


class AgentError(SmError):
    """The agent could not be started, or not be stopped."""


class Agent(Struct, frozen=True):
    """An agent that was launched: `started` in clock ticks since boot, `launched_at` since 1970.

    `generation` counts the launches of a session: 1, then one more for each recovery.
    """

    session: str
    pid: int
    started: int
    pane_id: str
    launched_at: float
    generation: int

    @property
    def process(self) -> Process:
        """It as a process."""
        return Process(self.pid, self.started)


def launch(tmux: Tmux, session: Session, start: Launch, *, generation: int) -> Agent:
    """Start the agent; returns it once it is on record.

    Repeating a launch that was interrupted adopts what it had started, so that an agent of one
    generation gets its prompt once.

    Raises:
        AgentError: its program cannot be started, or a session of this name runs already that
            is not this launch's.
        UsageError: its command or environment cannot be used.

    """
    directory = session.dir
    pane = tmux.pane(session.name)
    if pane is None:
        write_launch_files(tmux, session, start)
        crash_point("launch.before-start")
        pane = _start(tmux, session, _mark(directory, generation))
        crash_point("launch.after-start")
    elif pane.mark != _mark(directory, generation):
        raise AgentError(
            f"tmux session '{session.name}' runs something else already (process {pane.pid}): "
            "end it first, or rename it"
        )
    process = _await_launcher(directory, pane, session.transcript)
    return _put_on_record(directory, _agent(pane, process, generation))


def relaunch(tmux: Tmux, session: Session, start: Launch, *, generation: int) -> Agent:
    """End the agent and start another one, once for each `generation`, however often it is called.

    Raises:
        AgentError: the old one cannot be ended, or the new one not be started.
        UsageError: its command or environment cannot be used.

    """
    known = load(session.dir)
    if known and known.generation == generation:
        return known
    pane = tmux.pane(session.name)
    if pane is None or pane.mark != _mark(session.dir, generation):
        stop(tmux, session)
    crash_point("relaunch:stopped")
    return launch(tmux, session, start, generation=generation)


def adopt(tmux: Tmux, session: Session) -> Agent | None:
    """The agent that a launch of ours has left running, put on record again; None if none runs.

    tmux itself knows whose pane it is, so this needs none of the session's files.
    """
    directory = session.dir
    pane = tmux.pane(session.name)
    if pane is None or not pane.mark.startswith(_mark(directory)):
        return None
    process = proc.find(pane.pid)
    if process is None:
        return None
    if recorded(directory) != process:
        write_atomic(directory.agent_pid, f"{process.pid} {process.started}\n")
    if not session.transcript.exists():
        tmux.pipe_to(pane.id, _transcript(session))
    generation = read_number(pane.mark.rpartition("-")[2]) or 1
    return _put_on_record(directory, _agent(pane, process, generation))


def _agent(pane: Pane, process: Process, generation: int) -> Agent:
    return Agent(
        session=pane.session,
        pid=process.pid,
        started=process.started,
        pane_id=pane.id,
        launched_at=float(pane.created),
        generation=generation,
    )


def _put_on_record(directory: SessionDir, agent: Agent) -> Agent:
    if load(directory) != agent:
        write_json(directory.agent, agent)
    return agent


def load(directory: SessionDir) -> Agent | None:
    """The agent last launched, if any; None also where its record was damaged: see `lives`."""
    return read_rebuildable(directory.agent, Agent)


def is_alive(directory: SessionDir) -> bool:
    """Whether the agent that the launcher has recorded still runs; asks no tmux."""
    process = recorded(directory)
    return process is not None and proc.is_running(process)


def has_client(directory: SessionDir) -> bool:
    """Whether the agent CLI runs below the agent, which is a script around it."""
    wrapper, client = recorded(directory), _client(directory)
    if wrapper is None or client in (None, wrapper.pid):
        return False
    return any(process.pid == client for process in proc.family([wrapper]))


def has_lost_client(directory: SessionDir) -> bool:
    """Whether the agent CLI has ended, and the script around it, or its shell, is what is left."""
    wrapper, client = recorded(directory), _client(directory)
    if wrapper is None or client in (None, wrapper.pid):
        return False
    return not has_client(directory)


def _client(directory: SessionDir) -> int | None:
    line = (read_guarded(directory.client, 20) or b"").decode("ascii", "replace").strip()
    return read_number(line)


def alive(pane: Pane | None, agent: Agent) -> bool:
    """Whether `pane` is the agent's and runs it."""
    return pane is not None and not pane.dead and (pane.id, pane.pid) == (agent.pane_id, agent.pid)


def recorded(directory: SessionDir) -> Process | None:
    """The process that the launcher wrote down; None before it has."""
    line = (read_guarded(directory.agent_pid, 100) or b"").decode("ascii", "replace")
    found = re.fullmatch(r"([0-9]{1,9}) ([0-9]{1,18})\n", line)
    return Process(int(found[1]), int(found[2])) if found else None


def lives(tmux: Tmux, session: Session) -> bool:
    """Whether the agent runs in its pane: without that nobody could ever tell it anything.

    One whose record is lost is put on record again: tmux knows whose pane it is.
    """
    if has_lost_client(session.dir):
        return False
    known = load(session.dir)
    if known is None or recorded(session.dir) is None:
        known = adopt(tmux, session)
    return known is not None and is_alive(session.dir) and alive(tmux.pane(session.name), known)


def stop(tmux: Tmux, session: Session) -> None:
    """End the agent, its tmux session, and whatever the agent has started and left running.

    Only a session that a launch of ours has started is ended, and only processes that are
    certain to descend from its agent.

    Raises:
        AgentError: some of them survived even KILL.

    """
    leaders = {process} if (process := recorded(session.dir)) else set()
    pane = tmux.pane(session.name)
    ours = pane is not None and pane.mark.startswith(_mark(session.dir))
    if pane and ours and (program := proc.find(pane.pid)):
        leaders.add(program)
    family = proc.family(leaders)  # while parents still lead to their children
    if pane and ours:
        tmux.kill(session.name, pane.pid)
    _end(leaders | family)


def _end(members: set[Process]) -> None:
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL):
        if _end_by(number, members):
            return
    pids = ", ".join(sorted(str(process.pid) for process in _left(members)))
    raise AgentError(f"processes of the agent cannot be ended: {pids}")


def _end_by(number: signal.Signals, members: set[Process]) -> bool:
    told: set[Process] = set()

    def gone() -> bool:
        left = _left(members)
        proc.send(left - told, number)  # each once; also what was started meanwhile
        told.update(left)
        return not left

    return _wait(gone, STOP_GRACE_S)


def _left(members: set[Process]) -> set[Process]:
    """Those still running. `members` grows by what they have started since, but never by us."""
    members |= proc.family(members)
    return {p for p in members if p.pid != os.getpid() and proc.is_running(p)}


def _mark(directory: SessionDir, generation: int | str = "") -> str:
    """What tells a pane as that of one launch of one session."""
    place = hashlib.sha256(os.fsencode(directory.path)).hexdigest()[:12]
    return f"sm-{place}-{generation}"


def _start(tmux: Tmux, session: Session, mark: str) -> Pane:
    # -p: BASH_ENV and functions of the tmux server's environment stay out of it.
    launcher = shell_root() / "lib" / "launch"
    argv = ["bash", "-p", str(launcher), str(session.dir.path)]
    name, transcript = session.name, _transcript(session)
    try:
        return tmux.start(name, session.cwd, argv, mark=mark, transcript=transcript)
    except SessionExistsError as error:
        raise AgentError(error.message) from error


def _transcript(session: Session) -> Path:
    """Where its terminal is written down: in its own directory, if the usual name is taken."""
    flags = os.O_WRONLY | os.O_CREAT
    try:
        with open_guarded(session.transcript, flags):
            return session.transcript
    except StateError as error:
        own = session.dir.transcript
        detail = f"{error.message}: the transcript is in '{own}'"
        journal.record_once(session.root.journal, "problem", session.name, detail)
        with open_guarded(own, flags):
            return own


def _await_launcher(directory: SessionDir, pane: Pane, transcript: Path) -> Process:
    def outcome() -> Process | bytes | None:
        if (process := recorded(directory)) and process.pid == pane.pid:
            return process
        reason = read_guarded(directory.launch_error) or b""
        return reason.strip() if reason.endswith(b"\n") else None  # else it is just being written

    def settled() -> bool:
        return outcome() is not None or proc.find(pane.pid) is None

    _wait(settled, START_S)
    found = outcome()
    if isinstance(found, Process):
        return found
    reason = found or b"its launcher ended early"
    # tmux drops what a pane said last, now and then, when its program ends at once.
    if reason not in (read_guarded(transcript) or b""):
        append_line(transcript, b"sm: " + reason)
    said = reason.decode("utf-8", "replace").strip()
    raise AgentError(f"'{pane.session}' did not start: {said}")


def _wait(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(LOOK_S)
    return True
