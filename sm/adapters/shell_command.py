"""A shell command of the configuration: whatever becomes of us, it can be found and ended."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sm.adapters import procfs
from sm.base.clock import Deadline
from sm.store.files import read_json, write_json

GATE = 'read -r go || exit 125; exec "$@" </dev/null'
"""Shell words that wait until their process is on record, and end where that never happens."""

LOOK_S = 0.1
CHUNK = 1 << 16
GRACE_S = 5.0
"""Seconds between the polite end of an overdue command and the other one."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def spell(line: str) -> list[str]:
    """Return the command that has a shell run a line of the configuration."""
    return ["/bin/sh", "-c", line]


@contextlib.contextmanager
def running(
    argv: Sequence[str], cwd: Path, env: dict[str, str], record: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a session of its own, and end whatever is left of it afterwards.

    Both its outputs are in `stdout` of what is yielded. While it runs, the file `record` says which
    process it is.
    """
    with subprocess.Popen(  # noqa: S603 - the project's own command, from its configuration
        ["/bin/sh", "-c", GATE, "sh", *argv],
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        bufsize=0,
    ) as process:
        leader = procfs.find(process.pid) or procfs.Process(process.pid, 0)
        try:
            write_json(record, (leader.pid, leader.started, _boot()))
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(b"go\n")
                process.stdin.close()
            yield process
        finally:
            _end(process, leader)
            record.unlink(missing_ok=True)


def _end(process: subprocess.Popen[bytes], leader: procfs.Process) -> None:
    """End the command and all that it has started, politely while there is time."""
    if process.poll() is None:
        procfs.send(procfs.find_family([leader]), signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    _kill(leader)
    process.wait()


def _kill(leader: procfs.Process) -> None:
    """Kill what there is of the command's session; twice, for what was born meanwhile."""
    for _ in range(2):
        procfs.send(procfs.find_family([leader]), signal.SIGKILL)


def copy_output(
    process: subprocess.Popen[bytes], write: Callable[[bytes], None], deadline: Deadline
) -> bool:
    """Give `write` what the command says until it ends; False where it has to be ended."""
    pipe = process.stdout
    assert pipe is not None
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            # A child left in the background may keep the pipe open for ever.
            ended = process.poll() is not None
            ready = bool(selector.select(0 if ended else LOOK_S))
            chunk = os.read(pipe.fileno(), CHUNK) if ready else b""
            if chunk:
                write(chunk)
            elif ready or ended:
                break
            if deadline.is_over:
                return False
    try:
        process.wait(deadline.left_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def end_leftovers(record: Path) -> None:
    """End the command of that record if a kill has left it running, all of it and nothing else."""
    found = read_json(record, tuple[int, int, str])
    if found is not None:
        pid, started, boot = found
        if boot == _boot():  # else its numbers belong to others now
            _kill(procfs.Process(pid, started))
        record.unlink(missing_ok=True)


def _boot() -> str:
    """Return a name of the time since the machine was started; '' if the system has none."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
