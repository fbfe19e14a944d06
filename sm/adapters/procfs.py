"""Processes as Linux shows them in /proc, identified by pid and start time."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

PROC = Path("/proc")
READ_SIZE = 1 << 16
ENDED = frozenset((b"Z", b"X"))
"""States of a process that has ended, which its parent has not noticed yet."""


class Process(Struct, frozen=True, eq=False):
    """A running process. `started` is in clock ticks since boot; 0 if unknown."""

    pid: int
    started: int
    parent: int = 0
    session: int = 0

    def __eq__(self, other: object) -> bool:
        """Say whether it is the same process, even with another parent."""
        return isinstance(other, Process) and self._key == other._key

    def __ne__(self, other: object) -> bool:
        """Return the opposite: without this, msgspec calls every other object another process."""
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, int]:
        return self.pid, self.started


def find(pid: int) -> Process | None:
    """Return the process with `pid` now; see proc(5) for the fields."""
    try:
        stat = _read(pid, "stat")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name is in parentheses, and may contain blanks and parentheses.
    state, *fields = stat.rpartition(b")")[2].split()
    if state in ENDED:
        return None
    return Process(pid, int(fields[18]), int(fields[0]), int(fields[2]))


def list_pids() -> list[str]:
    """Return the numbers of all visible processes.

    Raises:
        OSError: this machine does not show them.

    """
    return [entry.name for entry in os.scandir(PROC) if entry.name.isdigit()]


def measure_age(process: Process) -> float:
    """Return for how many seconds it has run, including time in suspension."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - process.started / os.sysconf("SC_CLK_TCK")


def is_running(process: Process) -> bool:
    """Say whether this very process still runs, and no other one has its pid."""
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


def find_with_variable(*entries: bytes) -> list[Process]:
    """Return the processes whose initial environment has one of these `NAME=VALUE`."""
    found: list[Process | None] = []
    for pid, environment in _read_environments():
        if not set(entries).isdisjoint(environment.split(b"\0")):
            found.append(find(pid))
    return [process for process in found if process]


def find_by_variable(name: str) -> Iterator[tuple[Process, str]]:
    """Yield the processes whose initial environment has this variable, with its value."""
    start = b"\0" + os.fsencode(name) + b"="
    for pid, environment in _read_environments():
        _, found, rest = (b"\0" + environment).partition(start)
        if found and (process := find(pid)):
            yield process, os.fsdecode(rest.partition(b"\0")[0])


def read_command(process: Process) -> list[str]:
    """Return the words of its command line; none if it has ended."""
    try:
        said = (PROC / str(process.pid) / "cmdline").read_bytes()
    except OSError:
        return []
    return [os.fsdecode(word) for word in said.split(b"\0")[:-1]]


def read_environment(process: Process) -> dict[str, str]:
    """Return its initial environment.

    Raises:
        OSError: it has ended, or does not let us read it.

    """
    entries = map(os.fsdecode, _read(process.pid, "environ").split(b"\0"))
    parts = (entry.partition("=") for entry in entries)
    return {name: value for name, equals, value in parts if equals}


def read_folder(process: Process) -> Path:
    """Return its current folder.

    Raises:
        OSError: it has ended, or does not let us read it.

    """
    return (PROC / str(process.pid) / "cwd").readlink()


def read_name(process: Process) -> str:
    """Return the name of its program, '' if it has ended."""
    try:
        return (PROC / str(process.pid) / "comm").read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def find_at_terminals(folder: Path) -> Iterator[Process]:
    """Yield the processes with a terminal that are in `folder`: a shell, an editor.

    A process without a terminal is no person's: a daemon keeps the folder that it was started in.
    """
    place = os.path.realpath(folder)
    for pid in list_pids():
        with contextlib.suppress(OSError):  # another user's, or one that has just ended
            cwd = os.readlink(PROC / pid / "cwd")  # noqa: PTH115 - there are thousands
            if cwd != place and not cwd.startswith(f"{place}/"):
                continue
            stat = (PROC / pid / "stat").read_text("utf-8", "replace")
            # tty_nr, the fifth after the name: proc_pid_stat(5).
            if stat.rpartition(")")[2].split()[4] != "0" and (process := find(int(pid))):
                yield process


def find_ancestors(pid: int) -> list[Process]:
    """Return the process with `pid`, its parent, the parent of that, and so on."""
    found = []
    while pid and (process := find(pid)):
        found.append(process)
        pid = process.parent
    return found


def find_family(leaders: Collection[Process]) -> set[Process]:
    """Return the running ones of `leaders`, their descendants, and members of their sessions.

    A member of a process session is found even if all between have ended: the kernel reuses a
    session's number only after its last member is gone.
    """
    if not leaders:
        return set()
    table = {one.pid: one for pid in list_pids() if (one := find(int(pid)))}
    certain = [leader for leader in leaders if table.get(leader.pid, leader) == leader]
    numbers = {leader.pid for leader in certain}
    members = {process for process in table.values() if process.session in numbers}
    members |= {table[number] for number in numbers if number in table}
    while more := {process for process in table.values() if process.parent in numbers} - members:
        members |= more
        numbers |= {process.pid for process in more}
    return members


def send(processes: Iterable[Process], number: signal.Signals) -> None:
    """Signal each process that still runs, and no other process with its pid.

    The older ones come first: a shell whose command ended before it would start the next command.
    """
    for process in sorted(processes, key=lambda process: (process.started, process.pid)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            handle = os.pidfd_open(process.pid)
            try:
                if is_running(process):  # from here on the handle cannot mean another process
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)


def _read_environments() -> Iterator[tuple[int, bytes]]:
    """Yield the number and the initial environment of each process that lets us read it."""
    for pid in map(int, list_pids()):
        try:
            environment = _read(pid, "environ")
        except OSError:  # another user's, or one that has just ended
            continue
        yield pid, environment


def _read(pid: int, name: str) -> bytes:
    """Return a file of a process.

    Without what Python has around files: a look at all processes reads hundreds, and the more
    sessions there are, the more there are to read.
    """
    fd = os.open(f"{PROC}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = b""
        while part := os.read(fd, READ_SIZE):
            content += part
        return content
    finally:
        os.close(fd)
