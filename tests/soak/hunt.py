"""Carries a plan of faults out, and watches meanwhile that nothing runs twice."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from sm.adapters import procfs
from tests.soak import victims
from tests.soak.faults import Fault, Kind
from tests.soak.room import Room
from tests.soak.victims import Victim

FULL_S = 10.0
WATCH_S = 0.5
KILLS = frozenset(victims.MARKS)


@dataclass
class Hunt:
    """`struck` is what was done, `doubles` what ran twice: the kind, and for what."""

    room: Room
    plan: tuple[Fault, ...]
    say: Callable[[str], None]
    struck: Counter[Kind] = field(default_factory=Counter)
    doubles: set[tuple[Kind, str]] = field(default_factory=set)
    killed: set[int] = field(default_factory=set)
    left_out: set[Kind] = field(default_factory=set)
    _due: list[Fault] = field(default_factory=list)
    _next: int = 0
    _watched_at: float = 0.0
    _pairs: set[tuple[Kind, str, tuple[int, ...]]] = field(default_factory=set)

    @property
    def waiting(self) -> list[Fault]:
        """Faults that are still to come, or have found no victim so far."""
        return [*self._due, *self.plan[self._next :]]

    def look(self, elapsed_s: float) -> None:
        """Do what is due by now, and whatever found no victim before."""
        while self._next < len(self.plan) and self.plan[self._next].at_s <= elapsed_s:
            self._due.append(self.plan[self._next])
            self._next += 1
        if self._due:
            self._due = [fault for fault in self._due if not self._strike(fault, elapsed_s)]
        if time.monotonic() - self._watched_at > WATCH_S:
            self._watch()

    def _strike(self, fault: Fault, elapsed_s: float) -> bool:
        """Whether the fault could be done."""
        if fault.kind in KILLS:
            what = self._kill(fault)
            if not what:
                return False
        else:
            what = self._harm(fault.kind)
        self.struck[fault.kind] += what != ""
        self.say(f"{elapsed_s:6.1f} s  {what}")
        return True

    def _kill(self, fault: Fault) -> str:
        """Kill a process of that kind; says which one, '' where there is none."""
        if not victims.of_kind(fault.kind, self.room.processes()):
            return ""
        time.sleep(fault.later_s)
        found = victims.of_kind(fault.kind, self.room.processes())
        if not found:
            return ""
        victim = found[int(fault.pick * len(found))]
        told = f"killed the {fault.kind} {victim.process.pid} {of_what(fault.kind, victim)}"
        procfs.send([victim.process], signal.SIGKILL)
        self.killed.add(victim.process.pid)
        return told.rstrip()

    def _harm(self, kind: Kind) -> str:
        if kind is Kind.REBOOT:
            self.room.reboot(self.struck[kind] + 1)
            return "rebooted: everything is killed, and the state gone"
        if not self.room.has_disk:
            self.left_out.add(kind)
            return ""
        self.room.fill_disk(FULL_S)
        return f"the disk was full for {FULL_S:g} s"

    def _watch(self) -> None:
        """Two of a kind for the same thing, both there at two looks, are one too many."""
        self._watched_at, before, self._pairs = time.monotonic(), self._pairs, set()
        processes = self.room.processes()
        for kind in (Kind.AGENT, Kind.MONITOR, Kind.RUNNER):
            found: dict[str, list[int]] = {}
            for victim in victims.of_kind(kind, processes):
                found.setdefault(of_what(kind, victim), []).append(victim.process.pid)
            self._pairs |= {(kind, what, tuple(p)) for what, p in found.items() if len(p) > 1}
        self.doubles |= {pair[:2] for pair in self._pairs & before}


def of_what(kind: Kind, victim: Victim) -> str:
    """What a process is at work for: an issue, a session, a commit."""
    if kind is Kind.AGENT:
        return f"of #{victim.variable('ISSUE')}"
    if kind in (Kind.MONITOR, Kind.REACTOR, Kind.RUNNER):
        return f"of {victim.words[-1][:20]}"
    return ""
