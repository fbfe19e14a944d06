"""Rows of the matrix for a session that nears its limits, breaks them, and may go on. Pure.

The allowance of the facts says how far its limits are used up, and these rows react. All else that
would give the agent work, or restart it, waits meanwhile: see `decide`.
"""

from __future__ import annotations

from collections.abc import Iterator

from sm.issues.rules.allowance import STOPPING, STOPS, LimitStage, TurnAtLimit
from sm.issues.rules.decision_input import Life
from sm.issues.rules.facts import Facts
from sm.issues.rules.rows import PhaseCondition, Row, Step
from sm.sessions.failure import LONG_PARK_S
from sm.sessions.history import Count, Halt, StepVerb

TYPING_S = 120.0
"""Seconds of trying to ask for the document; then a person is asked without one."""
WRITING_S = 300.0
"""Seconds that the turn which writes the document may take; then it is interrupted like any
other."""
BEGINS_S = 5.0
"""Seconds after a request was taken within which the hooks tell of its turn."""
PATIENCE_S = 60.0
"""Seconds for which the rest may be unknown before a person is told."""

ANY = PhaseCondition()


def must_stop(f: Facts) -> bool:
    """Say whether a turn that is to end at once runs. Without hooks one may run at any time."""
    is_due = f.allowance is not None and f.allowance.stops(f.now, f.held_since)
    if f.session is Life.GONE or not is_due:
        return False
    if f.signs is None:
        return True
    # Processes that it has left in the background may be agents.
    return (f.turn_runs or f.signs.doing == "waiting") and not _writes_document(f)


def _writes_document(f: Facts) -> bool:
    """Whether the turn that runs is the one that was granted for the document."""
    halt = f.history.halt
    if halt is None or f.signs is None or f.allowance is None or not halt.asked_at:
        return False
    # The state is older than the receipt of the message that has begun the turn.
    is_that = f.signs.since <= halt.asked_at and f.now < halt.asked_at + WRITING_S
    return is_that and f.allowance.stage is LimitStage.OVER


def _lacks_document(f: Facts) -> bool:
    """Whether the agent is to be asked for a document: its turn was cut off, and it can answer."""
    halt = f.history.halt
    if halt is None or f.allowance is None or f.allowance.stage is not LimitStage.OVER:
        return False
    wanted = halt.stopped and not halt.asked_at and f.now < _begin_halt(f, halt) + TYPING_S
    able = f.session is Life.ALIVE and f.signs is not None
    return wanted and able and not (f.rotates or f.unreachable)


def _begin_halt(f: Facts, halt: Halt) -> float:
    """Return since when it waits. While a person has paused the session no time counts."""
    return max(halt.at, f.resumed_at)


def _rests(f: Facts) -> bool:
    """Whether nothing more is to be done to the agent; a turn may take a moment to begin."""
    halt = f.history.halt
    if f.turn_runs or _lacks_document(f):
        return False
    asked_at = halt.asked_at if halt else 0.0
    began = f.signs is None or not asked_at or f.signs.since > asked_at
    return began or f.now >= asked_at + BEGINS_S


def _is_over(f: Facts) -> bool:
    return f.allowance is not None and f.allowance.stage in STOPPING


def _is_held(f: Facts) -> bool:
    return f.allowance is not None and f.allowance.stage in (LimitStage.HELD, LimitStage.BLIND)


def _runs_on(f: Facts) -> bool:
    """Whether interruptions do not keep the agent from spending."""
    halt = f.history.halt
    return must_stop(f) and halt is not None and (halt.defied or halt.stops >= STOPS)


def tell_turn(f: Facts) -> TurnAtLimit:
    """Say what becomes of the agent's turn while a limit keeps it from spending."""
    if f.session is Life.GONE:
        return TurnAtLimit.GONE
    if f.signs is None:
        return TurnAtLimit.UNSEEN
    if _writes_document(f) and f.turn_runs:
        return TurnAtLimit.AT_DOCUMENT
    if must_stop(f):
        return TurnAtLimit.IS_STOPPED
    return TurnAtLimit.AT_WORK if f.turn_runs else TurnAtLimit.RESTS


def _is_held_for_long(f: Facts) -> bool:
    halt = f.history.halt
    waits_for_person = f.allowance is not None and f.allowance.until is None
    lasts = halt is not None and f.now >= _begin_halt(f, halt) + PATIENCE_S
    return _is_held(f) and waits_for_person and lasts


def _waits_for_long(f: Facts) -> bool:
    """Whether its going on has a known time, as late as people hear of any such wait."""
    halt = f.history.halt
    until = f.allowance.until if f.allowance else None
    return _is_held(f) and halt is not None and until is not None and until > halt.at + LONG_PARK_S


def _is_near(f: Facts) -> bool:
    return f.allowance is not None and f.allowance.stage is LimitStage.NEAR and f.turn_runs


def _goes_on(f: Facts) -> bool:
    return f.history.halt is not None and not f.brake


def _was_cut_off(f: Facts) -> bool:
    halt = f.history.halt
    return _goes_on(f) and halt is not None and (halt.stopped or halt.asked_at > 0)


def key_per_limit(f: Facts) -> str:
    """Return a key for a reaction once for each limit that is reached."""
    return f.halted


def _key_per_turn(f: Facts) -> str:
    return f"{f.halted}:{f.signs.since if f.signs else 0:.3f}"


def _key_per_halt(f: Facts) -> str:
    halt = f.history.halt or Halt("", 0.0)
    return f"{halt.matter}:{halt.at:.3f}"


LIMIT_STOP = Row(
    "limit-stop",
    ANY,
    "over a limit, or for seconds nobody knows what it spends, and a turn runs that writes no "
    "handoff document, or something in the background",
    (Step(StepVerb.INTERRUPT),),
    must_stop,
    _key_per_turn,
    about=key_per_limit,
    beside=True,
)

WHILE_PAUSED = (LIMIT_STOP,)
"""Rows that apply to a paused agent as well: its turn may go on, but not beyond its limit."""

AT_LIMIT = (
    Row(
        "limit-runs-on",
        ANY,
        "as for limit-stop, and it cannot be interrupted, or has begun turn after turn",
        (Step(StepVerb.NOTIFY, "limit-runs-on"),),
        _runs_on,
        key_per_limit,
        about=key_per_limit,
        passing=True,
    ),
    LIMIT_STOP,
    Row(
        "limit-handoff",
        ANY,
        "its turn was cut off, and what it may still spend is enough for the document",
        (Step(StepVerb.HAND_OFF, "limit-handoff"),),
        _lacks_document,
        key_per_limit,
        about=key_per_limit,
        passing=True,
    ),
    Row(
        "limit-asked",
        ANY,
        "over a limit, and the agent rests",
        (Step(StepVerb.NOTIFY, "limit-asked"),),
        lambda f: _is_over(f) and _rests(f),
        key_per_limit,
        about=key_per_limit,
        passing=True,
    ),
    Row(
        "limit-held",
        ANY,
        "held: its turn may end, and nothing new begins",
        (Step(StepVerb.PARK),),
        _is_held,
        key_per_limit,
        about=key_per_limit,
        passing=True,
    ),
    Row(
        "limit-wait-long",
        ANY,
        "held for more than an hour",
        (Step(StepVerb.COMMENT, "limit-wait"),),
        _waits_for_long,
        key_per_limit,
        about=key_per_limit,
        passing=True,
    ),
    Row(
        "limit-held-long",
        ANY,
        "held for a minute, and it is not known for how long",
        (Step(StepVerb.NOTIFY, "limit-held-long"),),
        _is_held_for_long,
        key_per_limit,
        about=key_per_limit,
        passing=True,
    ),
)
"""Rows for a limit that keeps the session from spending: none gives its agent work."""

NEAR_LIMIT = Row(
    "limit-near",
    ANY,
    "near a limit, and a turn runs; once for each limit",
    (Step(StepVerb.MENTION, "limit-near"),),
    _is_near,
    lambda f: f.allowance.matter if f.allowance else "",
    passing=True,
    beside=True,
)

AFTER_LIMIT = (
    Row(
        "limit-over",
        ANY,
        "it may spend again, and a turn of it was cut off",
        (Step(StepVerb.INJECT, "limit-over"),),
        _was_cut_off,
        _key_per_halt,
        counts=Count.GO_ON,
        about=key_per_limit,
        passing=True,
    ),
    Row(
        "limit-gone",
        ANY,
        "it may spend again",
        (Step(StepVerb.LET_GO_ON),),
        lambda f: _goes_on(f) and not _was_cut_off(f),
        _key_per_halt,
        counts=Count.GO_ON,
        about=key_per_limit,
        passing=True,
        beside=True,
    ),
)


def list_looks(f: Facts) -> Iterator[float]:
    """Yield the moments at which time alone makes one of the rows apply, or none any more."""
    if f.allowance is None:
        return
    if f.allowance.until is not None:
        yield f.allowance.until
    if f.allowance.stage is LimitStage.BLIND:
        yield f.allowance.stops_at(f.held_since)
    if f.brake and (halt := f.history.halt):
        yield _begin_halt(f, halt) + PATIENCE_S
        yield _begin_halt(f, halt) + TYPING_S
        if halt.asked_at:
            yield halt.asked_at + BEGINS_S
            yield halt.asked_at + WRITING_S
