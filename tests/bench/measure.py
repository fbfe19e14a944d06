"""Taking measurements: whole processes and calls, in turns with what they are compared with."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from msgspec import Struct

TICKS = os.sysconf("SC_CLK_TCK")

Take = Callable[[], float]
"""Does something once and returns what it measured."""


class Figure(Struct, frozen=True, kw_only=True):
    """What was measured, in `unit`. `budget` holds for the median; None: there is none.

    `beside` names the obvious alternative, `others` are its measurements from the same minutes.
    """

    name: str
    unit: str
    samples: list[float]
    budget: float | None = None
    beside: str = ""
    others: list[float] = []

    @property
    def median(self) -> float:
        """The middle one of the measurements."""
        return median(self.samples)

    @property
    def other(self) -> float:
        """The middle one of the alternative's."""
        return median(self.others)

    @property
    def ratio(self) -> float | None:
        """How many times the alternative it is; None where there is nothing to compare with."""
        return self.median / self.other if self.others and self.other else None

    @property
    def within(self) -> bool | None:
        """Whether it keeps to its budget."""
        return None if self.budget is None else self.median <= self.budget


@dataclass(frozen=True)
class Bench:
    """What a benchmark gets: a folder of its own, sealed from the person's, and its time.

    `once` is to see that it runs: everything as small as it can be, the figures mean nothing.
    """

    folder: Path
    quick: bool
    once: bool = False

    def rounds(self, full: int, quick: int) -> int:
        """How often to measure."""
        return 1 if self.once else quick if self.quick else full

    def seconds(self, full: float) -> float:
        """How long to look at something."""
        return full / 20 if self.once else full / 2 if self.quick else full

    def sizes(self, full: tuple[int, ...], quick: tuple[int, ...]) -> tuple[int, ...]:
        """How many there are of what is measured, from few to many."""
        return (1,) if self.once else quick if self.quick else full


@dataclass(frozen=True)
class Spent:
    """What a process took, with all its children: seconds by the clock, and of a processor."""

    wall_s: float
    cpu_s: float


def run(argv: Sequence[str], env: Mapping[str, str] | None = None) -> Spent:
    """Run a program to its end; one that fails is no measurement."""
    started = time.perf_counter()
    process = subprocess.Popen(
        argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    with process.stderr:
        said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{' '.join(argv)}: {said.decode('utf-8', 'replace')}"
    return Spent(wall, used.ru_utime + used.ru_stime)


def used_s(pid: int) -> float:
    """Seconds of a processor that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def wall_ms(*argv: str) -> Take:
    """Takes a whole process by the clock, in milliseconds."""
    return lambda: run(argv).wall_s * 1000


def call_ms(action: Callable[[], object]) -> Take:
    """Takes a call by the clock, in milliseconds."""

    def take() -> float:
        started = time.perf_counter()
        action()
        return (time.perf_counter() - started) * 1000

    return take


def in_turns(rounds: int, *takes: Take) -> list[list[float]]:
    """The measurements of each of `takes`, made A B A B …, after one of each that is thrown away.

    Whatever else the machine is doing meanwhile, it does to all of them. Where each is made but
    once, nobody looks at what it is, and none is thrown away.
    """
    for take in takes if rounds > 1 else ():
        take()
    found: list[list[float]] = [[] for _ in takes]
    for _ in range(rounds):
        for samples, take in zip(found, takes, strict=True):
            samples.append(take())
    return found


def measure_memory_mb(pids: Iterable[int]) -> float:
    """Return the megabytes of processes; what is shared with others counts in part (PSS)."""
    return sum(map(_measure_mb, pids))


def _measure_mb(pid: int) -> float:
    """0 for one that has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0
