"""Placing: what a tick does about an issue that is worked on elsewhere. Pure."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from sm.issues.runners import Standing


class Holder(StrEnum):
    """Holder of the issue's claim on the remote."""

    OURS = "this attempt's"
    LATER = "a later attempt's of this installation"
    OTHERS = "another installation's"
    NOBODY = "nobody's"


class PlacementDeed(StrEnum):
    """Deed of a tick for a placement."""

    LEAVE = "leave it as it is"
    PLACE = "have it begun there, or find that it was"
    MOVE = "place it elsewhere, under the next number"
    ADOPT = "put on record what the claim says"
    LET_GO = "give the claim up"
    WITHDRAW = "take it from its runner, and give the claim up"
    DROP = "take it from its runner, and forget it"
    FORGET = "forget it"


PLACE_FOR_S = 300.0
"""Seconds of trying to place an attempt at its host; then another host gets the next one."""


AGAIN_S = 30.0
"""Seconds before a host that could not begin a session is asked again."""

GONE = (Standing.LOST, Standing.OVER)
"""Standings in which nothing can be ended any more; what comes back ends by itself."""
REFUSALS = (Standing.REFUSED, Standing.UNFIT)
"""Standings of a session that its host does not begin."""


class PlacementCase(Struct, frozen=True):
    """Case of a placement. `standing` None: its runner says nothing of it.

    `is_placed`: its runner has taken it. `is_workable`: the issue is open, and not blocked.
    `is_paused`: a person wants nothing to begin there. `tried_for_s`: since it was claimed.
    """

    holder: Holder
    standing: Standing | None = None
    is_placed: bool = True
    is_workable: bool = True
    is_paused: bool = False
    tried_for_s: float = 0.0


def judge(case: PlacementCase) -> PlacementDeed:
    """Return what is to be done now."""
    match case.holder:
        case Holder.OTHERS:
            return PlacementDeed.FORGET if case.standing in GONE else PlacementDeed.DROP
        case Holder.LATER:
            return PlacementDeed.ADOPT
        case Holder.NOBODY:
            return _judge_given_up(case)
    if not case.is_placed:
        return _judge_unplaced(case)
    match case.standing:
        case Standing.LOST | Standing.OVER:
            return _begin(case, PlacementDeed.MOVE)
        case Standing.WAITING if not case.is_workable:
            return PlacementDeed.WITHDRAW
    return PlacementDeed.LEAVE


def _judge_given_up(case: PlacementCase) -> PlacementDeed:
    """Judge a session that its running node has given up: it is done, and about to end."""
    if not case.is_placed:
        return PlacementDeed.FORGET
    if case.standing is Standing.RUNNING:
        return PlacementDeed.LEAVE
    return PlacementDeed.DROP if case.standing is Standing.WAITING else PlacementDeed.FORGET


def _judge_unplaced(case: PlacementCase) -> PlacementDeed:
    """Judge one that is not placed: another host gets it, unless the fault is in the issue.

    Each host that has it costs an attempt.
    """
    match case.standing:
        case Standing.REFUSED:
            return _begin(case, PlacementDeed.MOVE)
        case Standing.UNFIT:
            return _begin(case, PlacementDeed.PLACE)
    return _begin(
        case, PlacementDeed.PLACE if case.tried_for_s < PLACE_FOR_S else PlacementDeed.MOVE
    )


def _begin(case: PlacementCase, deed: PlacementDeed) -> PlacementDeed:
    """Return the deed that begins work, unless there is none, or a person is against it."""
    if not case.is_workable:
        return PlacementDeed.WITHDRAW if deed is PlacementDeed.PLACE else PlacementDeed.LET_GO
    return PlacementDeed.LEAVE if case.is_paused else deed
