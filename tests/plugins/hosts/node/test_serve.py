"""The node's end of the channel, without ssh."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from sm.helper.lines import decode_line, encode_line
from sm.plugins.hosts import wire
from sm.plugins.hosts.wire import CallAnswer, Greeting, NodeRequest
from tests.helpers import REPOSITORY

pytestmark = pytest.mark.long_lived

PROGRAM = """
import os, sys, time
from sm.plugins.hosts.node.serve import Server

def run(argv):
    what, *words = argv
    if what == "say":
        print(words[0] * int(words[1]))
    elif what == "read":
        print(sys.stdin.read())
    elif what == "where":
        print(os.getcwd())
    elif what == "sleep":
        time.sleep(float(words[0]))
    elif what == "leave":
        if not os.fork():
            time.sleep(60)
            os._exit(0)
    elif what == "die":
        os.kill(os.getpid(), 9)
    return int(words[-1]) if what == "code" else 0

Server(run, {"shop": sys.argv[1]}.get, "1.2").serve()
"""


class Served:
    """A server, and the lines that go to it and come from it."""

    def __init__(self, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.stdin, self.stdout = stdin, stdout

    def ask(self, ident: int, *argv: str, **more: object) -> None:
        request = NodeRequest(id=ident, argv=argv, **more)  # type: ignore[arg-type]
        self.stdin.write(encode_line(request))
        self.stdin.flush()

    def read(self) -> CallAnswer:
        return decode_line(self.stdout.readline(), CallAnswer)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        line = process.stdout.readline()
        assert decode_line(line.removeprefix(wire.MARK), Greeting).sm == "1.2"
        yield Served(process.stdin, process.stdout)
        process.stdin.close()
        assert process.wait(20) == 0


def test_each_answer_has_its_number_in_whatever_order(served: Served) -> None:
    served.ask(7, "sleep", "0.5")
    served.ask(8, "code", "5")
    assert (served.read().id, served.read().id) == (8, 7)


def test_it_says_that_it_is_there(served: Served) -> None:
    before = time.time()
    served.ask(3)
    answer = served.read()
    assert before <= answer.now <= time.time(), "by its clock"
    assert answer == CallAnswer(id=3, now=answer.now)


def test_a_command_reads_what_came_with_it_and_runs_in_the_clone(
    served: Served, tmp_path: Path
) -> None:
    served.ask(1, "read", stdin="süß\n")
    assert served.read().stdout == "süß\n\n"
    served.ask(2, "where", project="shop")
    assert served.read().stdout == f"{tmp_path}\n"


def test_more_output_than_is_passed_on_is_cut(served: Served) -> None:
    served.ask(1, "say", "x", str(wire.OUTPUT_LIMIT + 5))
    answer = served.read()
    assert answer.cut
    assert len(answer.stdout) == wire.OUTPUT_LIMIT


def test_what_takes_too_long_is_ended(served: Served) -> None:
    served.ask(1, "sleep", "60", within_s=0.3)
    assert served.read().code == 124


def test_what_was_killed_is_told(served: Served) -> None:
    served.ask(1, "die")
    assert served.read().code == 137


def test_what_is_left_behind_keeps_nobody_waiting(served: Served) -> None:
    served.ask(1, "leave", within_s=30.0)
    assert served.read().code == 0


def test_more_commands_than_run_at_once_are_all_answered(served: Served) -> None:
    for number in range(30):
        served.ask(number, "code", str(number))
    assert {(one.id, one.code) for one in (served.read() for _ in range(30))} == {
        (number, number) for number in range(30)
    }
