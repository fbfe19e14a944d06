from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters import procfs
from tests.helpers import wait_for


def test_a_process_is_told_from_a_later_one_with_its_pid() -> None:
    mine = procfs.find(os.getpid())
    assert mine is not None
    assert procfs.is_running(mine)
    assert not procfs.is_running(structs.replace(mine, started=mine.started - 1))
    assert procfs.is_running(structs.replace(mine, started=0))


def test_a_process_is_the_same_under_another_parent() -> None:
    mine = procfs.find(os.getpid())
    assert mine
    adopted = structs.replace(mine, parent=1, session=1)
    assert adopted == mine
    assert not adopted != mine  # noqa: SIM202 -- msgspec answers it by its own rule
    assert len({adopted, mine}) == 1
    later = structs.replace(mine, started=mine.started + 1)
    assert later != mine
    assert not later == mine  # noqa: SIM201 -- both operators


def test_names_with_blanks_and_parentheses_are_read_past() -> None:
    child = subprocess.Popen(
        ["bash", "-c", "printf 'a) R (b' > /proc/$$/comm; echo ok; read -r x"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout
        child.stdout.readline()
        found = procfs.find(child.pid)
        assert found
        assert found.parent == os.getpid()
        child.kill()


def test_a_zombie_does_not_run() -> None:
    child = subprocess.Popen(["sleep", "100"])
    found = procfs.find(child.pid)
    assert found
    child.kill()
    wait_for(lambda: not procfs.is_running(found), "its end")
    child.wait()
    assert procfs.find(child.pid) is None


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "100"]) as process:
        yield process
        process.kill()


def test_family_is_found_with_its_strays_and_nobody_else(
    stranger: subprocess.Popen[bytes],
) -> None:
    # A child in a session of its own, and one whose parent has gone.
    script = "setsid sleep 31 & (sleep 32 &); sleep 33; true"
    with subprocess.Popen(["bash", "-c", script], start_new_session=True) as leader:
        found = procfs.find(leader.pid)
        assert found
        wait_for(lambda: len(procfs.find_family([found])) == 4, "the whole family")
        family = procfs.find_family([found])
        assert stranger.pid not in {process.pid for process in family}
        assert procfs.find_family([structs.replace(found, started=1)]) == set()
        procfs.send([structs.replace(process, started=1) for process in family], signal.SIGKILL)
        assert all(procfs.is_running(process) for process in family)
        procfs.send(family, signal.SIGKILL)
        wait_for(lambda: not any(procfs.is_running(process) for process in family), "its end")
    assert stranger.poll() is None


def test_a_shell_whose_family_is_ended_begins_no_further_command(tmp_path: Path) -> None:
    """The command first, the shell behind it: the shell would go on with the next line."""
    argv = ["sh", "-c", f"sleep 100; touch '{tmp_path}/went-on'"]
    for _ in range(20):
        with subprocess.Popen(argv, start_new_session=True) as shell:
            procfs.send(sorted(couple(shell.pid), key=lambda one: -one.pid), signal.SIGTERM)
    assert not (tmp_path / "went-on").exists()


def couple(pid: int) -> set[procfs.Process]:
    """The shell of that number with its command, once it has begun that."""
    leader = procfs.find(pid)
    assert leader
    wait_for(lambda: len(procfs.find_family([leader])) == 2, "its command")
    return procfs.find_family([leader])


def test_processes_are_found_by_a_variable_of_the_environment_they_began_with() -> None:
    env = {"ROOM": "/here", "OTHER": "x"}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=env) as here:
        found = procfs.find_with_variable(b"ROOM=/here", b"ROOM=/there")
        assert [process.pid for process in found] == [here.pid]
        assert procfs.find_with_variable(b"ROOM=/her", b"OOM=/here") == []
        valued = [(one.pid, value) for one, value in procfs.find_by_variable("ROOM")]
        assert valued == [(here.pid, "/here")]
        assert list(procfs.find_by_variable("OOM")) == []
