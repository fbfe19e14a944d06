"""The connection of ssh to a host, which all that we do there shares.

It is our own: a person's `ControlMaster` is not touched, and its life is ours to end. A master
process that has lost its network, or stands still, keeps whoever uses it waiting for ever; so it is
asked with a deadline, and one that does not answer is replaced.
"""

from __future__ import annotations

import contextlib
import re
import signal
import time

from sm.adapters import procfs
from sm.adapters.environment import select_lasting_environment
from sm.adapters.process import CommandTimeoutError, Result, ask, spawn
from sm.base.clock import Deadline
from sm.base.errors import TemporaryError
from sm.base.text import one_line
from sm.plugins.hosts.folder import HostFolder
from sm.plugins.hosts.settings import SshHost
from sm.plugins.hosts.ssh import command
from sm.store import lock
from sm.store.files import discard, read_harmless, read_json, write_json

CHECK_S = 2.0
"""Within which a master says that it is there: it asks nobody for that."""
OPEN_S = command.CONNECT_S + 5.0
LOOK_S = 0.02
TAIL = 4096
RUNNING = re.compile(r"Master running \(pid=(\d{1,9})\)")
"""OpenSSH's answer to `ssh -O check` (mux.c), on stderr."""


class HostUnreachableError(TemporaryError):
    """A host cannot be reached by ssh."""


def ensure(folder: HostFolder, host: SshHost) -> None:
    """Have a connection that answers; a stale one is replaced.

    Raises:
        UnreachableError: there can be none; it says why.

    """
    with lock.hold(folder.path / "master.lock", timeout_s=OPEN_S + CHECK_S):
        if _check(folder, host):
            return
        end(folder)
        _open(folder, host)


def end(folder: HostFolder) -> None:
    """End the connection, whether its process answers or not."""
    found = read_json(folder.master_process, tuple[int, int])
    if found:
        # Its number may be another's by now, whom the time of its start tells apart.
        procfs.send([procfs.Process(*found)], signal.SIGKILL)
    for path in (folder.master, folder.master_process):
        discard(path)


def _check(folder: HostFolder, host: SshHost) -> int:
    """The process that has the connection, if it answers; else 0."""
    with contextlib.suppress(CommandTimeoutError):
        answer = _run(folder, command.ask_master(host, "check"), CHECK_S)
        if found := RUNNING.search(answer.stderr):
            return int(found[1])
    return 0


def _open(folder: HostFolder, host: SshHost) -> None:
    log = folder.path / "master.log"
    discard(log)
    env = select_lasting_environment()
    process = spawn(*command.open_master(host), log=log, env=env, cwd=folder.path)
    deadline = Deadline(OPEN_S)
    while not (pid := _check(folder, host) if folder.master.exists() else 0):
        has_failed = process.poll() not in (None, 0)  # 0: it has gone on in the background
        if deadline.is_over or has_failed:
            end(folder)
            raise HostUnreachableError(explain(read_harmless(log, TAIL)) or "ssh does not answer")
        time.sleep(LOOK_S)
    if found := procfs.find(pid):
        write_json(folder.master_process, (found.pid, found.started))


def explain(said: bytes) -> str:
    """Return the last line that ssh has said, which says why it has ended."""
    lines = [one_line(line) for line in said.decode("utf-8", "replace").splitlines()]
    return next((line for line in reversed(lines) if line.strip()), "")


def _run(folder: HostFolder, argv: list[str], within_s: float) -> Result:
    return ask(*argv, cwd=folder.path, timeout_s=within_s, accept=tuple(range(256)))
