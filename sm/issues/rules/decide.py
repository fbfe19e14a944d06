"""Decides what is due now: a pure function of the facts, by the reaction matrix."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from msgspec import Struct

from sm.adapters.forge.model import CheckState
from sm.base.refusal import Refusal
from sm.issues.rules.facts import Facts
from sm.issues.rules.matrix import ROWS
from sm.issues.rules.rows import ProtocolStanding, Row, select
from sm.issues.rules.spending import list_looks
from sm.sessions.presence_rule import NOBODY, Disturbance, find_next_look
from sm.sessions.signs import STARTING_S

FIRST_LOOK_S = 60.0
"""Pause between checks whether the session asked before people is still there, in seconds."""

BY_HAND = "recover-by-hand:"
"""Beginning of the key of a restart that a person has asked for: it waits for nobody."""


class HeldReaction(Struct, frozen=True):
    """Reaction that is due and waits for people at the terminal, and why."""

    deed: Disturbance
    refusal: Refusal


class Decision(Struct, frozen=True):
    """Decision: the row that applies, and its key; `wake_at` is when to look again at the latest.

    Without a row, or without steps in it, there is nothing to do until then. `held` is what waits
    for people at the terminal. `queued`: there is work for the agent, which waits for a slot.
    """

    row: Row | None
    key: str
    wake_at: float
    held: HeldReaction | None = None
    queued: bool = False

    @property
    def concerns_people(self) -> bool:
        """Whether somebody has to check first who is at the terminal."""
        return self.row is not None and (self.row.deed is not None or self.row.in_sight)

    @property
    def acts(self) -> bool:
        """Whether there is anything to do."""
        return self.row is not None and bool(self.row.steps)


def decide(facts: Facts, among: tuple[Row, ...] = ROWS) -> Decision:
    """Return the first row that applies and is not dealt with, and when to look again."""
    wake_at = min(
        (moment for moment in chain(_deadlines(facts), list_looks(facts)) if moment > facts.now),
        default=facts.now + facts.policy.agent_timeout_s,
    )
    held: HeldReaction | None = None
    queued = withheld = False
    for row in select(among, ProtocolStanding.of(facts)):
        waits = queued or withheld or (held is not None and held.refusal is not Refusal.ATTACHED)
        if waits and not row.beside:
            continue
        if row.when(facts) and not facts.history.has(key := row.key(facts)):
            if found := _hold(row, facts):
                held = held or found
                continue
            if facts.brake and row.spends:
                withheld = True
                continue
            if facts.slotless and row.needs_slot(facts):
                queued = True
                continue
            return Decision(row, key, facts.now if row.steps else wake_at, held, queued)
    if held:
        look_at = find_next_look(held.refusal, facts.hands or NOBODY, facts.now)
        wake_at = min(wake_at, look_at)
    return Decision(None, "", wake_at, held, queued)


def _hold(row: Row, facts: Facts) -> HeldReaction | None:
    """Return why the row has to wait for people at the terminal."""
    deed = row.choose_deed(facts)
    refusal = facts.hinders(deed) if deed else None
    return HeldReaction(deed, refusal) if deed and refusal else None


def _deadlines_elsewhere(f: Facts) -> Iterator[float]:
    """Yield the deadlines of CI, reviewers and the forge."""
    if f.awaits_ci or (f.awaits_review and f.check is CheckState.PENDING):
        yield f.ci_due_at
    if f.awaits:
        yield f.rerun_until
        yield f.dropped_at
    if f.awaits_review:
        yield f.review_due_at
    if f.merge_held:
        yield f.merge_held_until


def _deadlines(f: Facts) -> Iterator[float]:
    """Yield the moments at which time alone makes a row apply."""
    if f.crashed:
        yield f.pause_until
    if f.escalated:
        yield f.remind_at
        yield f.answer_due_at
        yield min(f.first_until, f.now + FIRST_LOOK_S)
    yield from _deadlines_elsewhere(f)
    if f.working:
        yield f.life_at + f.policy.agent_timeout_s
        yield f.life_at + f.policy.merge_remind_s
    if f.idle_since is not None:
        yield f.idle_since
        yield f.idle_due_at
    if f.dialog_at is not None:
        yield f.dialog_due_at
    if f.asks:
        yield f.question_due_at
    if f.signs and f.signs.starting_at is not None:
        since = max(f.signs.starting_at, f.resumed_at)
        yield from (since + after_s for after_s in STARTING_S)
    if f.parked:
        yield f.parked_until
    if f.turn_runs and not f.working:
        yield f.sign_over_at
