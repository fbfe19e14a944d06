"""Shapes that several threads begin to use at once, and the lock in a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from sm.base import decoder
from tests.helpers import REPOSITORY

AT_ONCE = """
from __future__ import annotations

import sys
import threading
from typing import Annotated

from msgspec import Meta, Struct

from sm.base.decoder import convert, decode


class Leaf(Struct):
    number: Annotated[int, Meta(ge=0)]
    words: tuple[str, ...] = ()
    counts: dict[str, int] | None = None


class Twig(Struct):
    leaves: tuple[Leaf, ...] = ()
    named: dict[str, Leaf] | None = None
    more: list[Leaf] | None = None


class Branch(Struct):
    twig: Twig
    twigs: tuple[Twig, ...] = ()
    leaves: list[Leaf] | None = None


threads = 4
barrier = threading.Barrier(threads)
sys.setswitchinterval(1e-6)


def read():
    barrier.wait()
    decode('{"twig": {"leaves": [{"number": 1}]}}', Branch)
    convert({"number": 1}, Leaf)


started = [threading.Thread(target=read) for _ in range(threads)]
for one in started:
    one.start()
for one in started:
    one.join()
"""
PROCESSES = 16
"""With msgspec's own functions one in five of them crashes: all are well once in forty runs."""


@pytest.mark.sweep
@pytest.mark.parametrize("turn", range(PROCESSES))
def test_a_shape_that_threads_begin_to_use_at_once_crashes_nothing(turn: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, ""), turn


def test_a_fork_reads_although_another_thread_was_at_it() -> None:
    is_held, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        with decoder._lock:
            is_held.set()
            is_over.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait(60)
    pid = os.fork()
    if not pid:
        os._exit(0 if decoder.decode("[1]", list[int]) == [1] else 1)
    is_over.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
