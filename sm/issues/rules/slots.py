"""Says which sessions hold a slot, of which there are `max_sessions`. Pure."""

from __future__ import annotations

from sm.issues.rules.facts import Facts
from sm.issues.rules.rows import Row
from sm.sessions.failure import Fault


def is_at_work(facts: Facts) -> bool:
    """Whether the agent works, or is about to begin: then its session holds a slot.

    It does not while it waits for CI, for a person, or for the end of a usage limit. One whose
    turn runs all the same is at work: somebody has typed to it, or it has not finished yet.
    """
    if facts.turn_runs or not facts.history.started_at:
        return True
    return facts.working and not (facts.asks or facts.dialog_at is not None or _is_stopped(facts))


def _is_stopped(facts: Facts) -> bool:
    """Whether its turn has failed for longer than the minute that trouble of an API takes."""
    failure = facts.failure
    if failure is None:
        return False
    return failure.fault is Fault.LIMIT or failure.for_person or failure.lasting


def needs_slot(row: Row, facts: Facts) -> bool:
    """Whether what the row does has to wait until the session has a slot.

    What a person answers never waits, also if the agent has to be restarted for it.
    """
    return row.gives_work and not facts.turn_runs and not facts.reply
