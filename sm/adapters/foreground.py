"""Runs a program in a person's terminal, as a shell would, and keeps what is typed from the shell.

A person who types for an agent looks at words, not at the moment at which its terminal ends. What
comes after that moment would be a command line for the shell below.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import termios
import time
import tty
from collections.abc import Callable, Mapping, Sequence

TYPED = (signal.SIGINT, signal.SIGQUIT)
"""Signals that a key may send, which are for the program."""
CHUNK = 1 << 16
PAUSE_S = 1.0
"""Seconds without a key after which Enter counts: an Enter that ends a sentence comes sooner."""


def run_in_foreground(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Run `argv` in this terminal until it ends; return its exit code, negative after a signal.

    If it stops itself (tmux's suspend-client), so does this process, and both go on together.
    """
    process = subprocess.Popen(argv, env=dict(env))  # noqa: S603 - argv only
    kept = {number: signal.signal(number, signal.SIG_IGN) for number in TYPED}
    try:
        while True:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                process.returncode = os.waitstatus_to_exitcode(status)
                return process.returncode
            os.kill(os.getpid(), signal.SIGSTOP)
            process.send_signal(signal.SIGCONT)
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def pass_on_output(
    argv: Sequence[str], env: Mapping[str, str], take: Callable[[bytes], None]
) -> int:
    """Run `argv`, and give `take` what it writes as it writes it; return its exit code.

    It ends with us, and with an error of `take`. Its input has nothing to read, and no end.
    """
    process = subprocess.Popen(  # noqa: S603 - argv only
        argv, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert process.stdout is not None
    try:
        while data := process.stdout.read(CHUNK):
            take(data)
        return process.wait()
    finally:
        process.terminate()  # nothing, if it has ended
        process.communicate()


def swallow_typing(terminal: int) -> None:
    """Read and drop all that is typed at `terminal`, until Enter is pressed alone after a pause."""
    try:
        before = termios.tcgetattr(terminal)
    except termios.error:  # it is gone, or is none
        return
    try:
        tty.setraw(terminal, termios.TCSANOW)
        last = time.monotonic()
        while keys := os.read(terminal, 4096):
            now = time.monotonic()
            if keys in (b"\r", b"\n") and now - last >= PAUSE_S:
                return
            last = now
    except OSError:  # a person has closed it
        return
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
