"""What cuts a host off in a round of `bin/soak cut`, when and how: by the seed of the round."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tests.cable import BESIDE, NEAR, Cable
from tests.soak.fleet import Fleet


class Kind(StrEnum):
    """What happens to the node that has the issue."""

    HOME = "home out of reach"
    FORGE = "forge out of reach"
    BOTH = "cut off"
    DEAF = "hears nothing"
    MUTE = "is not heard"
    FLAPPING = "link comes and goes"
    SLOW = "link slow and lossy"
    FROZEN = "frozen, then thawed"
    DEAD = "killed whole"
    BOOT = "killed whole, its state lost"


class Moment(StrEnum):
    """What of an issue's life is seen just before."""

    CLAIM = "claim"
    BEGIN = "begin"
    PUSH = "first push"
    PHASE = "phase written"
    REVIEW = "review"
    MERGE = "merge"


SHORTEST_S, LONGEST_S, LATEST_S = 1.0, 7.0, 0.8
SILENT = (Kind.HOME, Kind.BOTH, Kind.DEAF, Kind.MUTE, Kind.FROZEN, Kind.DEAD)
"""Of these a host counts as lost after a while."""
TAKEN = 0.6
"""The part of them that goes on until another attempt has begun, and a while longer."""


@dataclass(frozen=True)
class Outage:
    """A while after the moment the node is cut off, for so long; `dice` are those of the round.

    `until_taken`: for so long after another attempt at the issue has begun.
    """

    kind: Kind
    moment: Moment
    after_s: float
    for_s: float
    until_taken: bool
    dice: random.Random

    def __str__(self) -> str:
        """Say it in a line."""
        how_long = f"{self.for_s:.1f} s" + " after it was taken over" * self.until_taken
        return f"{self.kind}, {self.after_s:.1f} s after {self.moment}, for {how_long}"


def draw(seed: int) -> Outage:
    """Return the outage of a round."""
    dice = random.Random(seed)
    kind, moment = dice.choice(list(Kind)), dice.choice(list(Moment))
    after_s, for_s = dice.uniform(0.0, LATEST_S), dice.uniform(SHORTEST_S, LONGEST_S)
    until_taken = dice.random() < TAKEN and kind in SILENT
    return Outage(kind, moment, after_s, for_s, until_taken, dice)


CUTS: dict[Kind, Callable[[Cable], object]] = {
    Kind.HOME: lambda cable: cable.cut_from(NEAR),
    Kind.FORGE: lambda cable: cable.cut_from(BESIDE),
    Kind.BOTH: Cable.cut,
    Kind.DEAF: Cable.deafen,
    Kind.MUTE: lambda cable: cable.cut_from(NEAR, BESIDE),
    Kind.FLAPPING: Cable.cut,
    Kind.SLOW: Cable.spoil,
}


def strike(fleet: Fleet, host: str, kind: Kind) -> Callable[[], None]:
    """Do it; return what ends it."""
    machine, cable = fleet.machines[host], fleet.cables[host]
    if kind in CUTS:
        CUTS[kind](cable)
        return cable.mend if kind is Kind.SLOW else cable.join
    if kind is Kind.FROZEN:
        fleet.freeze(machine)
        return machine.thaw
    machine.kill()
    if kind is Kind.BOOT:
        fleet.lose_state(machine)
    return machine.sshd.start


def shake(cable: Cable, dice: random.Random) -> None:
    """Have a link that comes and goes do so."""
    (cable.join if dice.random() < 0.4 else cable.cut)()
