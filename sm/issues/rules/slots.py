"""Use of slots: says which sessions hold one, of which there are `max_sessions`. Pure."""

from __future__ import annotations

from sm.issues.rules.facts import Facts
from sm.issues.rules.rows import Row
from sm.sessions.failure import FailureCause


def is_at_work(facts: Facts) -> bool:
    """Whether the agent works, or is about to begin: then its session holds a slot.

    It does not while it waits for CI or for a person, or may spend nothing. But an agent whose turn
    runs is at work: somebody has typed to it, or it has not finished yet. At a usage limit it keeps
    its slot: another session would begin, and meet the same limit.
    """
    if facts.turn_runs or not facts.history.started_at:
        return True
    if facts.brake:
        return False
    return facts.working and not (facts.asks or facts.dialog_at is not None or _is_stopped(facts))


def _is_stopped(facts: Facts) -> bool:
    """Whether its turn has failed, and a person has to see to it or is told of it."""
    failure = facts.failure
    if failure is None:
        return False
    return failure.for_person or (failure.lasting and failure.fault is not FailureCause.LIMIT)


def needs_slot(row: Row, facts: Facts) -> bool:
    """Whether the row's action has to wait until the session has a slot.

    What a person answers never waits, also if the agent has to be restarted for it.
    """
    return row.gives_work and not facts.turn_runs and not facts.reply
