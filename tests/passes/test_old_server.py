"""The server behind a monitor of an earlier version, which goes on beside a new one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

import sm
from sm.store import lock
from sm.store.paths import Root
from tests.company import Company
from tests.helpers import wait_for

Start = Callable[..., "Server"]

GONE = "dev-harb-7"


class Server(subprocess.Popen[str]):
    """A real one, with pipes as a monitor has them."""

    stdin: IO[str]
    stdout: IO[str]


@pytest.fixture
def start(root: Root) -> Iterator[Start]:
    """Start a server for a session, with the package of `folder` where one is given."""
    begun: list[Server] = []

    def start(session: str = GONE, folder: Path | None = None) -> Server:
        env = os.environ | {"SM_STATE_ROOT": str(root.path)}
        how = ["-Im"]
        if folder:
            how, env = ["-m"], env | {"PYTHONPATH": str(folder)}
        server = Server(
            [sys.executable, *how, "sm", "react-server", session],
            env=env,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        begun.append(server)
        return server

    yield start
    for server in begun:
        server.kill()
        server.communicate()


def ask(server: Server) -> str:
    server.stdin.write("\n")
    return server.stdout.readline()


def end(server: Server) -> tuple[int, str]:
    """Close its input; returns its exit code and what it has said."""
    said = server.communicate()[1]
    return server.returncode, said


def test_each_line_is_a_pass_and_the_end_of_input_its_end(start: Start) -> None:
    server = start()
    assert [ask(server) for _ in range(3)] == ["0\n"] * 3
    assert end(server) == (0, "")


def test_what_is_wrong_goes_to_stderr_and_its_exit_code_to_the_monitor(
    start: Start, root: Root
) -> None:
    session = root.session(GONE)
    for folder in (root.private, root.sessions, session.path):
        folder.mkdir(mode=0o700)
    session.identity.write_text("{")
    server = start()
    answers = {ask(server), ask(server)}
    code, said = end(server)
    assert answers == {"1\n"}
    assert code == 0
    assert said.count("\n") == 2
    assert str(session.identity) in said


def test_a_pass_that_is_killed_ends_alone(company: Company, start: Start) -> None:
    company.new("ann")
    session = company.session("ann")
    server = start(session.name)
    with lock.hold(session.dir.lock):  # the pass waits for it
        server.stdin.write("\n")
        os.kill(wait_for(lambda: child_of(server), "the pass"), signal.SIGKILL)
        assert server.stdout.readline() == "137\n"
    assert ask(server) == "0\n"


def child_of(server: Server) -> int:
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    return int(children[0]) if children else 0


def test_an_update_is_noticed_before_the_next_pass(start: Start, tmp_path: Path) -> None:
    package = Path(sm.__file__).parent
    copy = tmp_path / "copy" / "sm"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    server = start(folder=copy.parent)
    assert ask(server) == "0\n"
    with (copy / "issues" / "rules" / "matrix.py").open("a") as module:
        module.write("\nimport os\nos.write(2, b'new code')\n")
    assert ask(server) == "0\n"
    assert ask(server) == "0\n"
    assert end(server) == (0, "new code")


def test_it_serves_one_session(start: Start) -> None:
    server = start("--x")
    assert end(server)[0] == 2
