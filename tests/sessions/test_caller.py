"""Who calls: real processes, recorded as the launcher records agents."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sm.adapters import procfs
from sm.sessions import registry
from sm.sessions.caller import Caller, CallerError, identify
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession
from sm.store.paths import Root
from tests.helpers import wait_for

Begin = Callable[..., AdHocSession]


@pytest.fixture
def begin(root: Root, tmp_path: Path) -> Begin:
    """Put a session on record whose agent is the process of that number."""

    def made(name: str, pid: int, parent: str = "") -> AdHocSession:
        session = AdHocSession(
            AdHocRecord(
                name=name,
                provider="generic",
                cwd=tmp_path,
                config=None,
                state_root=root.path,
                created_at=1000.0,
                parent=parent,
                command="x",
            )
        )
        registry.create(root, session)
        process = procfs.find(pid)
        assert process
        session.dir.agent_pid.write_text(f"{pid} {process.started}\n")
        return session

    return made


@pytest.fixture
def agent() -> Iterator[subprocess.Popen[str]]:
    """A shell that leads a process session, as the program of a pane does; it prints pids."""
    with subprocess.Popen(
        ["bash", "-c", 'read -r line; eval "$line"; read -r _'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        leader = procfs.find(process.pid)
        yield process
        procfs.send(procfs.find_family({leader}) if leader else (), signal.SIGKILL)


def run_in(agent: subprocess.Popen[str], line: str) -> int:
    """Have the agent run a line that prints a process number."""
    assert agent.stdin
    assert agent.stdout
    agent.stdin.write(line + "\n")
    agent.stdin.flush()
    return int(agent.stdout.readline())


def test_a_process_of_no_agent_is_a_person_s(root: Root, begin: Begin) -> None:
    assert identify(root, {}) == Caller()


def test_a_child_of_a_child_is_the_session_s(
    root: Root, begin: Begin, agent: subprocess.Popen[str]
) -> None:
    session = begin("s-1", agent.pid)
    pid = run_in(agent, "bash -c 'sleep 60 & echo $!; wait' &")
    assert identify(root, {}, pid).session == session
    assert identify(root, {"CLAUDE_SESSION_MANAGER_ID": "s-1"}, pid).session == session


def test_a_process_whose_parents_have_ended_is_the_session_s(
    root: Root, begin: Begin, agent: subprocess.Popen[str]
) -> None:
    session = begin("s-1", agent.pid)
    pid = run_in(agent, "(sleep 60 & echo $!)")
    wait_for(lambda: (found := procfs.find(pid)) and found.parent != agent.pid, "its parent's end")
    assert identify(root, {}, pid).session == session


def test_the_id_of_another_session_is_refused(
    root: Root, begin: Begin, agent: subprocess.Popen[str]
) -> None:
    begin("s-1", agent.pid)
    pid = run_in(agent, "sleep 60 & echo $!")
    with pytest.raises(CallerError, match="can only act as itself"):
        identify(root, {"CLAUDE_SESSION_MANAGER_ID": "s-2"}, pid)


def test_an_id_without_its_agent_is_refused(root: Root, begin: Begin) -> None:
    with pytest.raises(CallerError, match="unset it to act as a person"):
        identify(root, {"CLAUDE_SESSION_MANAGER_ID": "s-1"})


def test_the_nearest_of_two_agents_counts(
    root: Root, begin: Begin, agent: subprocess.Popen[str]
) -> None:
    begin("s-1", agent.pid)
    pid = run_in(agent, "bash -c 'echo $$; read -r _'")
    inner = begin("s-2", pid)
    assert identify(root, {}, pid).session == inner


def test_a_number_that_was_given_away_anew_is_no_agent_s(
    root: Root, begin: Begin, agent: subprocess.Popen[str]
) -> None:
    session = begin("s-1", agent.pid)
    session.dir.agent_pid.write_text(f"{agent.pid} 1\n")
    assert identify(root, {}, agent.pid) == Caller()


def test_a_session_may_end_what_descends_from_it_and_nothing_else(root: Root, begin: Begin) -> None:
    pid = os.getpid()
    top, kid, grandkid, other = (
        begin(name, pid, parent)
        for name, parent in (("s-1", ""), ("s-2", "s-1"), ("s-3", "s-2"), ("s-4", ""))
    )
    known = [top, kid, grandkid, other]
    for target in (top, kid, grandkid):
        Caller(top).check_may_end(target, known)
    Caller().check_may_end(other, known)
    for caller, target in ((kid, top), (top, other), (other, kid)):
        with pytest.raises(CallerError, match="may end only itself"):
            Caller(caller).check_may_end(target, known)


def test_a_circle_of_parents_ends(root: Root, begin: Begin) -> None:
    one, two = begin("s-1", os.getpid(), "s-2"), begin("s-2", os.getpid(), "s-1")
    with pytest.raises(CallerError):
        Caller(begin("s-3", os.getpid())).check_may_end(one, [one, two])
