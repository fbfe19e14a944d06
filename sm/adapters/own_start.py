"""Starts `sm` as a process that outlives us: a fork of us where that is safe, else a new Python.

Python and the core are most of what a small command costs, and a fork has them at hand.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NoReturn

from sm.adapters.process import explain_unstarted, spawn
from sm.base.clock import wait_until
from sm.store.files import open_guarded

Run = Callable[[list[str]], int]
"""Runs the command line of `sm` and returns its exit code."""

STDIN, STDOUT, STDERR = range(3)
FAILED = 1
TASKS = Path("/proc/self/task")
ENDING_S, ENDING_LOOK_S = 1.0, 0.002
"""Seconds that our other threads may take to end, and seconds between two looks."""

_run: Run | None = None
_forked: list[int] = []
"""Kept so that a later start collects the end of each."""


def fork_by(run: Run) -> None:
    """Make later starts of `sm` forks of us: `run` is called in the fork, with the words.

    Only for a process that ends soon and was begun with an environment for what lasts: that one
    stays readable in `/proc/PID/environ` of a fork, whatever is in its own.
    """
    global _run
    _run = run


def start(*words: str, log: Path, env: Mapping[str, str], kept: Collection[int] = ()) -> None:
    """Start `sm` with these words, in its own session; append its output to `log`.

    `env` is its whole environment. Of our descriptors it has only those `kept`.

    Raises:
        SmError: the process cannot be started.

    """
    if _run is None or not _is_alone():
        argv = (sys.executable, "-Im", "sm", *words)
        spawn(*argv, log=log, pass_fds=tuple(kept), env=env)
        return
    _forked[:] = [child for child in _forked if not _has_ended(child)]
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # or the fork would write what waits there once more
    try:
        with open_guarded(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as output:
            child = os.fork()
            if not child:
                _be(_run, list(words), output, env, kept)
    except OSError as error:
        raise explain_unstarted(("sm", *words), error) from error
    _forked.append(child)


def _is_alone() -> bool:
    """Say whether we have one thread: in a fork nobody would release what another one holds."""
    try:
        return sum(1 for _ in TASKS.iterdir()) == 1
    except OSError:
        return False


def fork_aside(action: Callable[[], object]) -> bool:
    """Call `action` in a fork of us, which nobody waits for; False if that is not safe now.

    It has no terminal, and what it says is not seen. Of our descriptors it has none.

    Raises:
        SmError: there can be no process more.

    """
    # Those that have waited for a program's end may just be ending.
    if not wait_until(_is_alone, ENDING_S, ENDING_LOOK_S):
        return False
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    try:
        output = os.open(os.devnull, os.O_WRONLY)
        child = os.fork()
        if not child:
            _be_aside(action, output)
        os.close(output)
    except OSError as error:
        raise explain_unstarted(("sm",), error) from error
    _forked.append(child)
    return True


def _be_aside(action: Callable[[], object], output: int) -> NoReturn:
    code = FAILED
    try:
        _detach(output, ())
        action()
        code = 0
    finally:
        os._exit(code)


def _detach(output: int, kept: Collection[int]) -> None:
    """Leave behind what our parent has open, its terminal and its garbage."""
    gc.freeze()  # none of it is the fork's garbage: looking at it would copy it
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), STDIN)
    os.dup2(output, STDOUT)
    os.dup2(output, STDERR)
    _close_all_but({STDIN, STDOUT, STDERR, *kept})


def _be(
    run: Run, words: list[str], output: int, env: Mapping[str, str], kept: Collection[int]
) -> NoReturn:
    """Be what a new `sm` would be; nothing of this process is unwound, whatever goes wrong."""
    code = FAILED
    try:
        _detach(output, kept)
        os.environ.clear()
        os.environ.update(env)
        time.tzset()
        code = run(words)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(code)


def _close_all_but(kept: Collection[int]) -> None:
    """Close what we have open: locks above all, which would not be free with their holder's end."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - only the numbers
        if int(name) not in kept:
            with contextlib.suppress(OSError):  # that of the list itself
                os.close(int(name))


def _has_ended(child: int) -> bool:
    try:
        return os.waitpid(child, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True
