"""Which faults there are, and a random plan of them: the same seed makes the same plan."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What is killed, or else goes wrong."""

    AGENT = "agent"
    MONITOR = "monitor"
    REACTOR = "reactor"
    SERVER = "server of reactors"
    POLL = "dev-poll"
    RUNNER = "CI runner"
    TMUX = "tmux server"
    REBOOT = "reboot"
    FULL_DISK = "full disk"


WEIGHTS = {
    Kind.AGENT: 6,
    Kind.MONITOR: 4,
    Kind.REACTOR: 5,
    Kind.SERVER: 2,
    Kind.POLL: 4,
    Kind.RUNNER: 3,
    Kind.TMUX: 1,
}
"""How often each kind of process is chosen, of 25."""

LATER_S = 0.6
"""A process that is found is killed within this time, anywhere in its short life."""
REACTOR_LATER_S = 0.1
"""The same for a reactor, which lives shorter than all others."""

MARGIN = 0.1
"""The part of the time before the first and behind the last reboot."""


@dataclass(frozen=True, order=True)
class Fault:
    """At `at_s` seconds, `later_s` after a victim is found; `pick` (0 to 1) chooses of several."""

    at_s: float
    kind: Kind
    pick: float
    later_s: float


def draw(seed: int, *, kills: int, reboots: int, disks: int, gap_s: float) -> tuple[Fault, ...]:
    """The plan of a run, in order; there is a kill every `gap_s` seconds on average."""
    dice = random.Random(seed)
    whole_s = duration_s(kills, gap_s)
    kinds = dice.choices(list(WEIGHTS), list(WEIGHTS.values()), k=kills)
    planned = [_fault(dice, kind, dice.uniform(0, whole_s)) for kind in kinds]
    for kind, count in ((Kind.REBOOT, reboots), (Kind.FULL_DISK, disks)):
        planned += [_fault(dice, kind, _spread(dice, n, count, whole_s)) for n in range(count)]
    return tuple(sorted(planned))


def duration_s(kills: int, gap_s: float) -> float:
    """For how long there are faults."""
    return kills * gap_s


def _fault(dice: random.Random, kind: Kind, at_s: float) -> Fault:
    later_s = REACTOR_LATER_S if kind is Kind.REACTOR else LATER_S
    return Fault(at_s, kind, dice.random(), dice.uniform(0, later_s))


def _spread(dice: random.Random, number: int, count: int, whole_s: float) -> float:
    """A moment of its own share of the time, neither at the beginning nor at the end."""
    share = (number + dice.random()) / count
    return whole_s * (MARGIN + share * (1 - 2 * MARGIN))
