"""`sm` in a process of its own, without Python's start: a fork of the test's process.

Python and its imports are most of what a command costs, and a journey calls a dozen of them. As
with a program that is started, the command has its own environment, folder, streams and exit code,
and none of the test's files is open in it. That each verb also starts as a program is proved by
`tests/project/test_forked.py`.
"""

from __future__ import annotations

import fcntl
import functools
import gc
import logging
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NoReturn, TextIO

from sm.__main__ import main

BY_START = ("PYTHON", "LANG", "LC_")
"""With other variables of these than the test has, which Python reads as it starts, it starts."""
STREAMS = 3
NEWS = 3
"""The descriptor by which a command tells what it had to import."""
HIGHEST = 1 << 16
"""No descriptor is above it."""
UNTOLD: list[int] = []
"""Where commands that were left running tell in the end what they had to import."""
NOT_SHOWN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
"""The warnings that Python does not show by itself."""


def run_sm(
    *args: str, env: Mapping[str, str], cwd: Path, stdin: str = "", timeout_s: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run `sm` with these arguments; `env` is all of its environment.

    Raises:
        subprocess.TimeoutExpired: it was still running, or had left its streams to something.

    """
    argv = [sys.executable, "-Im", "sm", *args]
    if not _may_fork(env):
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            check=False,
            input=stdin,
            cwd=cwd,
            env=env,
            timeout=timeout_s,
        )
    given, *pipes = (os.pipe() for _ in range(STREAMS + 1))
    with _no_word_of_threads():
        child = os.fork()
    if not child:
        _become(args, env, cwd, [given[0], *(writing for _, writing in pipes)])
    for end in (given[0], *(writing for _, writing in pipes)):
        os.close(end)
    try:
        said = _talk(given[1], stdin.encode(), [reading for reading, _ in pipes], timeout_s)
    except TimeoutError as error:
        os.kill(child, signal.SIGKILL)
        raise subprocess.TimeoutExpired(argv, timeout_s) from error
    finally:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    stdout, stderr, news = (part.decode() for part in said)
    for name in news.split():
        import_module(name)  # so that the next fork has it
    return subprocess.CompletedProcess(argv, code, stdout, stderr)


def start_sm(*args: str, env: Mapping[str, str], cwd: Path) -> subprocess.Popen[str]:
    """Start `sm` with these arguments, and leave it running; its stdout and stderr are pipes.

    `env` is all of its environment. Its command line is that of the test's process: who looks at
    that, or at its memory, or takes the time of its start, starts the program.
    """
    argv, is_forked = [sys.executable, "-Im", "sm", *args], _may_fork(env)
    _learn_what_was_told()
    hear, tell = os.pipe()
    os.set_blocking(hear, False)
    UNTOLD.append(hear)
    try:
        with _no_word_of_threads():
            return subprocess.Popen(
                argv,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=cwd,
                env=env,
                restore_signals=not is_forked,  # Python itself ignores them as it starts
                # It never returns, and closes the pipe at whose end Popen takes it for started.
                preexec_fn=functools.partial(_become, args, env, cwd, [0, 1, 2, tell])
                if is_forked
                else None,
            )
    finally:
        os.close(tell)


def _may_fork(env: Mapping[str, str]) -> bool:
    """Whether a fork could be what a program with that environment would be."""
    starts = any(env.get(name) != os.environ.get(name) for name in env if name.startswith(BY_START))
    # Another thread may hold a lock, which nothing would let go of in its fork.
    return not starts and threading.current_thread() is threading.main_thread()


@contextmanager
def _no_word_of_threads() -> Iterator[None]:
    """They only wait for what pytest is told."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _learn_what_was_told() -> None:
    """Import what commands had to that have ended, so that the next fork has it."""
    for hear in list(UNTOLD):
        try:
            said = os.read(hear, 65536)
        except BlockingIOError:  # it runs
            continue
        UNTOLD.remove(hear)
        os.close(hear)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in said.decode().split():
                import_module(name)


def _talk(writing: int, stdin: bytes, pipes: list[int], timeout_s: float) -> list[bytes]:
    """Give what it reads, and gather all that it says until it and its children have gone."""
    deadline = time.monotonic() + timeout_s
    said = dict.fromkeys(pipes, b"")
    os.set_blocking(writing, False)
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        selector.register(writing, selectors.EVENT_WRITE)
        try:
            while selector.get_map():
                ready = selector.select(deadline - time.monotonic())
                if not ready:
                    raise TimeoutError
                for key, _ in ready:
                    if key.fd == writing:
                        stdin = _give(writing, stdin)
                        is_done = not stdin
                    else:
                        said[key.fd] += (part := os.read(key.fd, 65536))
                        is_done = not part
                    if is_done:
                        selector.unregister(key.fd)
                        os.close(key.fd)
        finally:
            for left in list(selector.get_map().values()):
                os.close(left.fd)
    return list(said.values())


def _give(writing: int, stdin: bytes) -> bytes:
    """Write what goes into the pipe; returns the rest, none where it is read no more."""
    try:
        return stdin[os.write(writing, stdin) :] if stdin else b""
    except BlockingIOError:
        return stdin
    except BrokenPipeError:
        return b""


def _become(args: tuple[str, ...], env: Mapping[str, str], cwd: Path, ends: list[int]) -> NoReturn:
    """Be what `python -Im sm` would be: nothing of pytest's is left, whatever goes wrong."""
    code = 1
    gc.freeze()  # what pytest has is none of the command's garbage: looking at it would copy it
    try:
        for number, end in enumerate([fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in ends]):
            os.dup2(end, number, inheritable=number != NEWS)
        os.closerange(NEWS + 1, HIGHEST)
        os.chdir(cwd)
        own = dict(env)  # which may be os.environ itself
        os.environ.clear()
        os.environ.update(own)
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
        sys.unraisablehook, threading.excepthook = sys.__unraisablehook__, threading.__excepthook__
        _say_what_python_says()
        sys.argv = ["sm", *args]
        code = _call()
    finally:
        os._exit(code)


def _say_what_python_says() -> None:
    """Warnings and what is logged go to stderr, as without pytest."""
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)
    warnings.resetwarnings()
    for category in NOT_SHOWN:
        warnings.simplefilter("ignore", category)
    warnings.showwarning = _show_warning  # pytest's keeps them for itself


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    (file or sys.stderr).write(warnings.formatwarning(message, category, filename, lineno, line))


def _call() -> int:
    """Run the command, and tell what it has imported of ours and of Python's."""
    known = set(sys.modules)
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    sys.stdout.flush()
    sys.stderr.flush()
    new = [name for name in sys.modules if name not in known and name != "__main__"]
    os.write(NEWS, " ".join(new).encode()[:60000].rpartition(b" ")[0])
    return code
