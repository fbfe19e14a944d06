"""Processes as Linux shows them in /proc, told apart for certain by pid and moment of start."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

PROC = Path("/proc")
ENDED = frozenset("ZX")
"""States of a process that runs no more; its parent has not noticed yet."""


class Process(Struct, frozen=True, eq=False):
    """A running process. `started` is in clock ticks since boot; 0 where that cannot be known."""

    pid: int
    started: int
    parent: int = 0
    session: int = 0

    def __eq__(self, other: object) -> bool:
        """Whether it is the same process: its parent may have changed."""
        return isinstance(other, Process) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, int]:
        return self.pid, self.started


def find(pid: int) -> Process | None:
    """The process that runs under `pid` now; see proc(5) for the fields."""
    try:
        stat = (PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name is in parentheses and may hold blanks and parentheses itself.
    state, *fields = stat.rpartition(")")[2].split()
    if state in ENDED:
        return None
    return Process(pid, int(fields[18]), int(fields[0]), int(fields[2]))


def list_pids() -> list[str]:
    """The numbers of all processes that may be seen.

    Raises:
        OSError: this machine does not show them.

    """
    return [entry.name for entry in os.scandir(PROC) if entry.name.isdigit()]


def age_s(process: Process) -> float:
    """For how many seconds it has been running, also while the machine was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - process.started / os.sysconf("SC_CLK_TCK")


def is_running(process: Process) -> bool:
    """Whether this very process still runs, not another one with its pid."""
    if process.started and PROC.joinpath("self").exists():
        found = find(process.pid)
        return found is not None and found.started == process.started
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def with_variable(*entries: bytes) -> list[Process]:
    """What runs with one of these entries, each `NAME=VALUE`, in the environment it began with."""
    found: list[Process | None] = []
    for entry in PROC.glob("[1-9]*"):
        with contextlib.suppress(OSError):  # another user's, or one that has just ended
            if not set(entries).isdisjoint((entry / "environ").read_bytes().split(b"\0")):
                found.append(find(int(entry.name)))
    return [process for process in found if process]


def family(leaders: Iterable[Process]) -> set[Process]:
    """What runs of `leaders`: themselves, their descendants, the members of their sessions.

    A member of a process session is found even when all between have ended: the kernel gives
    a session's number to nobody else before its last member is gone.
    """
    table = {process.pid: process for process in _all()}
    certain = [leader for leader in leaders if table.get(leader.pid, leader) == leader]
    numbers = {leader.pid for leader in certain}
    members = {process for process in table.values() if process.session in numbers}
    members |= {table[number] for number in numbers if number in table}
    while more := {process for process in table.values() if process.parent in numbers} - members:
        members |= more
        numbers |= {process.pid for process in more}
    return members


def send(processes: Iterable[Process], number: signal.Signals) -> None:
    """Signal each of them that still runs; a pid that was given to another one is left alone."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            handle = os.pidfd_open(process.pid)
            try:
                if is_running(process):  # from here on the handle cannot mean another one
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)


def _all() -> list[Process]:
    return [process for pid in list_pids() if (process := find(int(pid)))]
