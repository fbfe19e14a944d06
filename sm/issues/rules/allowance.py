"""What a session may still spend, as far as that decides what is done with it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct


class Stage(StrEnum):
    """How far a limit is used up; each is stricter than those before it."""

    FREE = "free"
    NEAR = "near"
    """The agent is told, once."""
    HELD = "held"
    """A turn that runs may end; nothing new begins."""
    OVER = "over"
    """The turn is interrupted, a handoff document is written from a reserve, then it rests."""
    SPENT = "spent"
    """The reserve is used up as well, or there is none: it is interrupted, and rests."""


class Allowance(Struct, frozen=True):
    """What a limit leaves a session.

    `matter` is the same for as long as it is the same limit at the same height: for each the agent
    is told once, and a person is asked once. `shown` says in words what is used of it, such as
    "$8.20 of $10.00 for this issue". `until` is when it ends by itself, in seconds since 1970; None
    if a person has to decide, by `command`.
    """

    stage: Stage
    matter: str
    shown: str
    until: float | None = None
    command: str = ""

    @property
    def holds(self) -> bool:
        """Whether nothing new may begin."""
        return self.stage in HOLDING

    @property
    def stops(self) -> bool:
        """Whether a turn that runs is to end at once."""
        return self.stage in STOPPING


HOLDING = frozenset({Stage.HELD, Stage.OVER, Stage.SPENT})
STOPPING = frozenset({Stage.OVER, Stage.SPENT})

_ORDER = {stage: number for number, stage in enumerate(Stage)}


def find_strictest(found: Iterable[Allowance]) -> Allowance | None:
    """Return the one that leaves the least; None if there is none. Of equals it ends the last."""
    return max(found, key=_rank, default=None)


def _rank(one: Allowance) -> tuple[int, float]:
    return _ORDER[one.stage], float("inf") if one.until is None else one.until
