"""Launches the agent of a session as its pane's own program, finds it again, and ends all of it."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from sm.adapters import procfs
from sm.adapters.procfs import Process
from sm.adapters.tmux import Pane, Tmux
from sm.adapters.tmux_start import RESERVED, SessionExistsError, start_session
from sm.base.clock import wait_until
from sm.base.errors import SmError, StateError
from sm.base.foreign import read_number
from sm.sessions import sandboxes
from sm.sessions.agent import Agent, has_lost_client, is_alive, load, read_process, runs_in_pane
from sm.sessions.launch import Launch, write_launch_files
from sm.sessions.session import Session
from sm.shell_root import find_shell_root
from sm.store import events, journal
from sm.store.failpoint import crash_point
from sm.store.files import append_line, open_guarded, read_guarded, write_atomic, write_json
from sm.store.paths import Root, SessionDir

START_S = 15.0
STOP_GRACE_S = 2.0
"""Time that the agent gets after hang-up, and after TERM, in seconds."""
KILL_S = 30.0
"""Time that a busy machine may take to end what was killed, in seconds."""
LOOK_S = 0.02
VARIABLE = "SM_SESSION_DIR"
"""Variable that tells whose a process is. An agent's processes have it in their first environment,
even in a process session of their own and without a parent. A working directory proves nothing,
because a person's shell may be there, too."""
MARK = "sm-"
"""Beginning of the mark of each pane."""


class AgentError(SmError):
    """The agent could not be started or ended."""


def launch(tmux: Tmux, session: Session, start: Launch, *, generation: int) -> Agent:
    """Start the agent, and return it once it is on record.

    If an earlier launch was interrupted, this adopts the agent that it started. So the agent of one
    generation gets its prompt once.

    Raises:
        AgentError: its program cannot be started, or another session of this name runs
            already.
        UsageError: its command or environment cannot be used.
        SandboxError: its sandbox cannot be had.

    """
    directory = session.dir
    pane = tmux.pane(session.name)
    if pane is None or pane.mark == RESERVED:
        write_launch_files(tmux, session, start)
        crash_point("launch.before-start")
        pane = _start(tmux, session, name_mark(directory, generation))
        crash_point("launch.after-start")
    elif pane.mark != name_mark(directory, generation):
        raise AgentError(
            f"tmux session '{session.name}' runs something else already (process {pane.pid}): "
            "end it first, or rename it"
        )
    process = _await_launcher(directory, pane, session.terminal_log)
    return _put_on_record(directory, _agent(pane, process, generation))


def relaunch(tmux: Tmux, session: Session, start: Launch, *, generation: int) -> Agent:
    """End the agent and start another one, once for each `generation`, even if called again.

    Raises:
        AgentError: the old one cannot be ended, or the new one cannot be started.
        UsageError: its command or environment cannot be used.
        SandboxError: its sandbox cannot be had; the old agent stays.

    """
    known = load(session.dir)
    if known and known.generation == generation:
        return known
    pane = tmux.pane(session.name)
    if pane is None or pane.mark != name_mark(session.dir, generation):
        sandboxes.check(session)  # or the old agent would be gone, and no other could start
        stop(tmux, session)
    crash_point("relaunch:stopped")
    return launch(tmux, session, start, generation=generation)


def adopt(tmux: Tmux, session: Session) -> Agent | None:
    """Put a running agent of this session on record again; None if none runs.

    It needs no file of the session, because tmux knows whose pane it is.
    """
    directory = session.dir
    pane = tmux.pane(session.name)
    if pane is None or not is_ours(pane, directory):
        return None
    process, known = procfs.find(pane.pid), read_process(directory)
    if process is None or pane.dead or _is_a_later_one(process, known):
        return None
    if known != process:
        write_atomic(directory.agent_pid, f"{process.pid} {process.started}\n")
    if not session.terminal_log.exists():
        tmux.pipe_to(pane.id, _find_terminal_log(session))
    generation = read_number(pane.mark.rpartition("-")[2]) or 1
    return _put_on_record(directory, _agent(pane, process, generation))


def _is_a_later_one(process: Process, known: Process | None) -> bool:
    """Say whether the pane's program has ended, and this process or thread has got its number.

    The program leads a session of the kernel, as no thread does, and its start may be on record.
    """
    is_leader = process.session == process.pid
    return not is_leader or (known is not None and known.pid == process.pid and known != process)


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


def is_ours(pane: Pane, directory: SessionDir) -> bool:
    """Say whether a launch of this session, of this state root, has made the pane."""
    return pane.mark.startswith(name_mark(directory))


def is_of_sm(pane: Pane) -> bool:
    """Say whether a launch of any installation has made the pane."""
    return pane.mark.startswith(MARK) and pane.mark != RESERVED


def is_reachable(tmux: Tmux, session: Session) -> bool:
    """Say whether the agent runs in its pane. Otherwise no message could ever reach it.

    If its record is lost, this puts it on record again: tmux knows whose pane it is.
    """
    if has_lost_client(session.dir):
        return False
    known = load(session.dir)
    if known is None or read_process(session.dir) is None:
        known = adopt(tmux, session)
    return (
        known is not None and is_alive(session.dir) and runs_in_pane(tmux.pane(session.name), known)
    )


def stop(tmux: Tmux, session: Session) -> None:
    """End the agent, its tmux session, and all processes that the agent has left running.

    It ends only a session that a launch of ours has started, and only processes that certainly come
    from its agents, earlier ones included.

    Raises:
        AgentError: some of them survived even KILL.

    """
    leaders = {process} if (process := read_process(session.dir)) else set()
    pane = tmux.pane(session.name)
    ours = pane is not None and is_ours(pane, session.dir)
    if pane and ours and (program := procfs.find(pane.pid)):
        leaders.add(program)
    leaders |= find_strays(session.dir)
    family = procfs.find_family(leaders)  # now, while parents still lead to their children
    if pane and ours:
        tmux.kill(session.name, pane.pid)
    _end(leaders | family)
    _end(find_strays(session.dir))  # what one of them started while it ended
    sandboxes.clean(session)


def end_strays(session: Session) -> None:
    """End what earlier agents of the session have left running; a running agent stays.

    Raises:
        AgentError: some of them survived even KILL.

    """
    process = read_process(session.dir)
    spared = procfs.find_family([process]) if process and procfs.is_running(process) else set()
    if found := find_strays(session.dir) - spared:
        names = ", ".join(sorted(f"{procfs.read_name(one)} ({one.pid})" for one in found))
        ended = events.StraysEnded(session=session.name, processes=names)
        journal.record(session.root.journal, ended)
        _end(found)


def end(process: Process) -> None:
    """End a process, and what it has started.

    Raises:
        AgentError: some of it survived even KILL.

    """
    _end({process})


def _end(members: set[Process]) -> None:
    for number in (signal.SIGHUP, signal.SIGTERM):
        if _end_by(number, members, STOP_GRACE_S):
            return
    if _end_by(signal.SIGKILL, members, KILL_S):
        return
    pids = ", ".join(sorted(str(process.pid) for process in _find_left(members)))
    raise AgentError(f"processes of the agent cannot be ended: {pids}")


def _end_by(number: signal.Signals, members: set[Process], within_s: float) -> bool:
    told: set[Process] = set()

    def gone() -> bool:
        left = _find_left(members)
        # Each process once, with those that have started meanwhile.
        procfs.send(left - told, number)
        told.update(left)
        return not left

    return wait_until(gone, within_s, LOOK_S)


def _find_left(members: set[Process]) -> set[Process]:
    """Return those that still run. `members` grows by what they have started since, without us."""
    members |= procfs.find_family(members)
    return {p for p in members if p.pid != os.getpid() and procfs.is_running(p)}


def name_mark(directory: SessionDir, generation: int | str = "") -> str:
    """Return the mark of a pane: it names one launch of one session."""
    place = hashlib.sha256(os.fsencode(directory.path)).hexdigest()[:12]
    return f"{MARK}{place}-{generation}"


def _start(tmux: Tmux, session: Session, mark: str) -> Pane:
    # -p ignores BASH_ENV and functions in the environment of the tmux server.
    launcher = find_shell_root() / "lib" / "launch"
    argv = ["bash", "-p", str(launcher), str(session.dir.path)]
    name, log = session.name, _find_terminal_log(session)
    try:
        return start_session(
            tmux, name, session.record.cwd, argv, mark=mark, title=session.label, log=log
        )
    except SessionExistsError as error:
        raise AgentError(error.message) from error


def _find_terminal_log(session: Session) -> Path:
    """Return the path of the terminal log: in the session's directory if the usual one is taken."""
    flags = os.O_WRONLY | os.O_CREAT
    try:
        with open_guarded(session.terminal_log, flags):
            return session.terminal_log
    except StateError as error:
        own = session.dir.terminal_log
        detail = f"{error.message}: the terminal log is in '{own}'"
        problem = events.Problem(session=session.name, text=detail)
        journal.record_once(session.root.journal, problem)
        with open_guarded(own, flags):
            return own


def _await_launcher(directory: SessionDir, pane: Pane, log: Path) -> Process:
    def outcome() -> Process | bytes | None:
        if (process := read_process(directory)) and process.pid == pane.pid:
            return process
        # Without a line end, the launcher is still writing it.
        reason = read_guarded(directory.launch_error) or b""
        return reason.strip() if reason.endswith(b"\n") else None

    def settled() -> bool:
        return outcome() is not None or procfs.find(pane.pid) is None

    wait_until(settled, START_S, LOOK_S)
    found = outcome()
    if isinstance(found, Process):
        return found
    reason = found or b"its launcher ended early"
    # tmux sometimes drops the last words of a pane whose program ends at once.
    if reason not in (read_guarded(log) or b""):
        append_line(log, b"sm: " + reason + b"\r")  # as a terminal ends its lines
    said = reason.decode("utf-8", "replace").strip()
    raise AgentError(f"'{pane.session}' did not start: {said}")


def find_strays(directory: SessionDir) -> set[Process]:
    """Return all processes of the session's agents, the current agent included."""
    return {one for one, place in procfs.find_by_variable(VARIABLE) if place == str(directory.path)}


def find_all_strays(root: Root) -> Iterator[tuple[SessionDir, Process]]:
    """Yield all processes of any session's agents, with the session, which may be gone."""
    for process, place in procfs.find_by_variable(VARIABLE):
        if Path(place).parent == root.sessions:
            yield root.session(Path(place).name), process
