"""Allowance: what a session may still spend, as far as decisions depend on it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from sm.base.act import Act


class LimitStage(StrEnum):
    """Stage of a limit; each is stricter than those before it."""

    FREE = "free"
    NEAR = "near"
    """The agent is told, once."""
    HELD = "held"
    """A turn that runs may end; nothing new begins."""
    BLIND = "blind"
    """The spending is unknown: nothing new begins, and soon a turn that runs is interrupted."""
    OVER = "over"
    """The turn is interrupted; the agent writes a handoff document from a reserve, then rests."""
    SPENT = "spent"
    """The reserve is used up as well, or there is none: the agent is interrupted, and rests."""


class TurnAtLimit(StrEnum):
    """State of the agent's turn while a limit keeps it from spending."""

    GONE = "the agent does not run"
    UNSEEN = "its hooks do not tell whether the agent is at work"
    AT_DOCUMENT = "the agent is at work on its handoff document"
    IS_STOPPED = "the agent is at work, and is being stopped"
    AT_WORK = "the agent is at work"
    RESTS = "the agent rests"


class Allowance(Struct, frozen=True):
    """Allowance that a limit leaves a session.

    `matter` stays the same while the limit and its height do: for each the agent is told once, and
    a person is asked once. `shown` says in words what is used of it, such as "$8.20 of $10.00 for
    this issue". `until` is when it ends by itself, in seconds since 1970; None if a person has to
    decide, by the `act` if one is known. `blind_since` is since when nobody knows what was spent, 0
    if the meter does not tell.
    """

    stage: LimitStage
    matter: str
    shown: str
    until: float | None = None
    act: Act | None = None
    blind_since: float = 0.0

    @property
    def command(self) -> str:
        """Command by which a person decides; '' for none."""
        return self.act.command if self.act else ""

    @property
    def holds(self) -> bool:
        """Whether nothing new may begin."""
        return self.stage in HOLDING

    def stops(self, now: float, held_since: float) -> bool:
        """Whether a running turn of a session that is held since `held_since` is to end now."""
        if self.stage is LimitStage.BLIND:
            return now >= self.stops_at(held_since)
        return self.stage in STOPPING

    def stops_at(self, held_since: float) -> float:
        """Return when a turn ends if by then nobody knows what was spent."""
        return (self.blind_since or held_since) + BLIND_S


BLIND_S = 3.0
"""Seconds for which a turn goes on while its spending is unknown: a database may be busy for a
moment. With the time to notice it and to end the turn, that makes ten seconds at most."""
STOPS, DEFIED_S = 5, 20.0
"""Interrupted turns, and seconds that a turn goes on after its due end, until a person is told.
Every further turn is interrupted all the same."""
HOLDING = frozenset({LimitStage.HELD, LimitStage.BLIND, LimitStage.OVER, LimitStage.SPENT})
STOPPING = frozenset({LimitStage.OVER, LimitStage.SPENT})

_ORDER = {stage: number for number, stage in enumerate(LimitStage)}


def find_strictest(found: Iterable[Allowance]) -> Allowance | None:
    """Return the strictest one; None if there is none. Of equals, the one that ends last."""
    return max(found, key=_rank, default=None)


def _rank(one: Allowance) -> tuple[int, float]:
    return _ORDER[one.stage], float("inf") if one.until is None else one.until
