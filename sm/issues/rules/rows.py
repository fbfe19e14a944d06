"""Parts of a row of the reaction matrix."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import cache
from string import Formatter
from typing import NamedTuple

from msgspec import Struct

from sm.base.phase import Phase
from sm.issues.rules.decision_input import Life, Policy
from sm.issues.rules.facts import Facts
from sm.sessions.history import Count, StepVerb
from sm.sessions.presence_rule import Disturbance


class AnswerStage(StrEnum):
    """Stage of the answer to the agent's last phase."""

    ANY = "answered or not"
    OPEN = ""
    """The phase has no answer yet."""
    ANSWERED = "answered"
    """The phase has an answer, or there is no phase."""
    ESCALATED = "escalated"
    """A person was asked, about the phase or another matter, and has not answered."""


class ProtocolStanding(NamedTuple):
    """Standing of a session in the protocol. Most rows are for few standings."""

    phase: Phase
    open: bool
    escalated: bool

    @classmethod
    def of(cls, facts: Facts) -> ProtocolStanding:
        """Return the standing by these facts."""
        return cls(facts.phase, facts.open, facts.escalated)


PHASES = frozenset(Phase)
GIVING_WORK = frozenset({StepVerb.INJECT, StepVerb.RECOVER})


class PhaseCondition(Struct, frozen=True):
    """Phases that a row is for, and the stage of their answer."""

    phases: frozenset[Phase] = PHASES
    stage: AnswerStage = AnswerStage.ANY

    def fits(self, standing: ProtocolStanding) -> bool:
        """Whether the agent has said one of them, and the answer is that far."""
        if standing.phase not in self.phases:
            return False
        match self.stage:
            case AnswerStage.OPEN:
                return standing.open
            case AnswerStage.ANSWERED:
                return not standing.open
            case AnswerStage.ESCALATED:
                return standing.escalated
        return True

    def __str__(self) -> str:
        """Return the text of its column in docs/PROTOCOL.md."""
        left_out = PHASES - self.phases
        if not left_out:
            words = "(empty) or answered" if self.stage is AnswerStage.ANSWERED else "any"
            return f"{words}, escalated" if self.stage is AnswerStage.ESCALATED else words
        if len(self.phases) > len(left_out):
            return f"any but {_name(left_out)}"
        named = _name(self.phases)
        return f"{named}, {self.stage}" if self.stage and self.phases != {Phase.NONE} else named


def _name(phases: frozenset[Phase]) -> str:
    return ", ".join(one.removeprefix("PHASE:") or "(empty)" for one in Phase if one in phases)


class Step(Struct, frozen=True):
    """Action of a plan; `text` names its message (see prompts)."""

    verb: StepVerb
    text: str = ""

    def __str__(self) -> str:
        """Return the step as docs/PROTOCOL.md has it."""
        return f"{self.verb} “{self.text}”" if self.text else str(self.verb)


def key_per_write(facts: Facts) -> str:
    """Return a key for a reaction once for each phase write."""
    return facts.write


def key_per_offer(facts: Facts) -> str:
    """Return a key once for each phase write, and once more if what was opened then is gone.

    It is gone if the forge was set back to an older copy.
    """
    is_gone = bool(facts.history.offered) and facts.history.has(f"open-pull:{facts.write}")
    return f"{facts.write}:again" if is_gone else facts.write


def key_per_question(facts: Facts) -> str:
    """Return a key for a reaction once for each matter that a person is asked about."""
    return facts.about


def key_per_failure(facts: Facts) -> str:
    """Return a key for a reaction once for each failure of the agent's API."""
    return f"{facts.failure.at:.3f}" if facts.failure else ""


def always(_: Facts) -> bool:
    """Return True: for a row that applies wherever the session stands as it says."""
    return True


class Row(Struct, frozen=True, eq=False):
    """Row of the matrix. It reacts to its `subject`, and to each subject once.

    `said` is matched first; `when` is the condition that is particular to the row, and `fact` the
    same in words. `limit` says which limits that is about: a template over the fields of `Policy`.
    `about` is the key of the question to a person, or of the answer to the agent. `passing`: its
    plan is pointless as soon as the row no longer applies. `deed` is what it does to a session that
    people may be at, or `to_gone` if its agent is gone: it waits for them. `in_sight`: a person
    there sees what it tells of. `beside`: it is done while such a row waits.
    """

    name: str
    said: PhaseCondition
    fact: str
    steps: tuple[Step, ...]
    when: Callable[[Facts], bool] = always
    subject: Callable[[Facts], str] = key_per_write
    limit: str = ""
    counts: Count = Count.NONE
    provisional: bool = False
    about: Callable[[Facts], str] = key_per_write
    passing: bool = False
    deed: Disturbance | None = None
    to_gone: Disturbance | None = None
    in_sight: bool = False
    beside: bool = False

    def applies(self, facts: Facts) -> bool:
        """Whether the row reacts to these facts."""
        return self.said.fits(ProtocolStanding.of(facts)) and self.when(facts)

    def key(self, facts: Facts) -> str:
        """Return the key of one reaction of this row."""
        return f"{self.name}:{self.subject(facts)}"

    @property
    def spends(self) -> bool:
        """Whether its agent has a turn for it."""
        return not {step.verb for step in self.steps}.isdisjoint(GIVING_WORK)

    @property
    def gives_work(self) -> bool:
        """Whether its agent is to do something after it. A provisional row only tells it."""
        return self.spends and not self.provisional

    def needs_slot(self, facts: Facts) -> bool:
        """Whether the row's action has to wait until the session has a slot.

        What a person answers never waits, also if the agent has to be restarted for it.
        """
        return self.gives_work and not facts.turn_runs and not facts.reply

    def choose_deed(self, facts: Facts) -> Disturbance | None:
        """Return its deed to the session; None if that waits for nobody."""
        return self.to_gone if self.to_gone and facts.session is Life.GONE else self.deed

    def list_limits(self, policy: Policy) -> dict[str, float]:
        """Return the parts of the policy that it is about, by their names, as plain numbers."""
        names = (name for _, name, _, _ in Formatter().parse(self.limit) if name)
        return {name: getattr(policy, name) + 0 for name in names}  # a duration loses its type


@cache
def select(rows: tuple[Row, ...], standing: ProtocolStanding) -> tuple[Row, ...]:
    """Return the rows for such a standing, in their order; found once for each."""
    return tuple(row for row in rows if row.said.fits(standing))
