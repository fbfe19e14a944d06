"""The process of a CI command: whatever becomes of its runner, it can be found and ended."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sm.adapters import proc
from sm.adapters.forge.local.check_folder import CheckFolder
from sm.store.files import read_json, write_json

GATE = 'read -r go || exit 125; exec /bin/sh -c "$1" </dev/null'
"""Waits until it has been written down which process it is; ends where that never happens."""

GRACE_S = 5.0
"""Between the polite end of an overdue command and the other one."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@contextlib.contextmanager
def running(
    command: str, cwd: Path, env: dict[str, str], folder: CheckFolder
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a shell command in a session of its own; whatever of it is left in the end is ended.

    Both its outputs are in `stdout` of what is yielded.
    """
    with subprocess.Popen(  # noqa: S603 - the project's own command, from its configuration
        ["/bin/sh", "-c", GATE, "sh", command],
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        bufsize=0,
    ) as process:
        leader = proc.find(process.pid) or proc.Process(process.pid, 0)
        try:
            write_json(folder.process, (leader.pid, leader.started, _boot()))
            _let_go(process)
            yield process
        finally:
            _end(process, leader)
            folder.process.unlink(missing_ok=True)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(b"go\n")
        process.stdin.close()


def _end(process: subprocess.Popen[bytes], leader: proc.Process) -> None:
    """End the command and all that it has started, politely while there is time."""
    if process.poll() is None:
        proc.send(proc.find_family([leader]), signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    _kill(leader)
    process.wait()


def _kill(leader: proc.Process) -> None:
    """Kill what there is of the command's session; twice, for what was born meanwhile."""
    for _ in range(2):
        proc.send(proc.find_family([leader]), signal.SIGKILL)


def end_leftovers(folder: CheckFolder) -> None:
    """End what a killed runner has left running, all of it and nothing else."""
    found = read_json(folder.process, tuple[int, int, str])
    if found is not None:
        pid, started, boot = found
        if boot == _boot():  # else its numbers belong to others now
            _kill(proc.Process(pid, started))
        folder.process.unlink(missing_ok=True)


def _boot() -> str:
    """A name of the time since the machine was started; '' where the system has none."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
