"""What goes wrong with hosts, and a random plan of it: the same seed makes the same plan."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What happens to a host, or to the machine that decides what runs where."""

    CUT = "link cut"
    DEAD = "killed whole"
    BOOT = "killed whole, its state lost"
    FROZEN = "frozen, then thawed"
    AWAY = "controller down"


WEIGHTS = {Kind.CUT: 3, Kind.DEAD: 3, Kind.BOOT: 2, Kind.FROZEN: 3, Kind.AWAY: 2}
SHORTEST_S = 2.0


@dataclass(frozen=True, order=True)
class Trouble:
    """At `at_s` seconds, for `for_s`; `pick` (0 to 1) chooses of the hosts that are well."""

    at_s: float
    kind: Kind
    for_s: float
    pick: float


def draw(seed: int, *, count: int, gap_s: float, longest_s: float) -> tuple[Trouble, ...]:
    """The plan of a run, in order. Each kind comes once before the others are left to chance."""
    dice = random.Random(seed)
    kinds = list(WEIGHTS)
    dice.shuffle(kinds)
    kinds += dice.choices(list(WEIGHTS), list(WEIGHTS.values()), k=max(0, count - len(kinds)))
    times = sorted(dice.uniform(gap_s, count * gap_s) for _ in range(count))
    return tuple(
        Trouble(at_s, kind, dice.uniform(SHORTEST_S, longest_s), dice.random())
        for at_s, kind in zip(times, kinds, strict=False)
    )
