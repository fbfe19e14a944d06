"""Turns in the session of an issue, as its events tell: of agent, CI, reviewer or person.

A session does one thing at a time. What holds it comes first: a pause by a person, then a question
to one, then a limit; else it is the turn of whoever the agent's last phase waits for. docs/PAGE.md
tells people the same.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

from sm.base.need import NeedKind
from sm.base.phase import Phase
from sm.issues.rules.matrix import BY_NAME
from sm.sessions.history import NUDGES, UNASKED, Count, StepVerb
from sm.store import events
from sm.store.events import Event


class Turn(StrEnum):
    """Party that the time of an issue goes to."""

    AGENT = "agent"
    CI = "ci"
    REVIEW = "review"
    PERSON = "person"
    REST = "rest"
    """Nobody's turn: it is paused, or has to wait for what it may spend or for its API."""


class Span(NamedTuple):
    """Turn between two moments, in seconds since 1970."""

    turn: Turn
    begin: float
    end: float


OF_PHASES = {
    Phase.AWAITING_CI: Turn.CI,
    Phase.AWAITING_REVIEW: Turn.REVIEW,
    Phase.ESCALATE: Turn.PERSON,
}
"""Turn that begins when an agent writes the phase; after any other it stays the agent's."""
TELLING = frozenset({StepVerb.INJECT, StepVerb.START, StepVerb.RECOVER, StepVerb.HAND_OFF})
"""Steps after which the agent is at work."""
ASKING = frozenset({StepVerb.CONSULT, StepVerb.NOTIFY, StepVerb.REMIND})
"""Steps that ask a person or an earlier session. A late review stays the reviewer's."""
GOES_ON = frozenset({Count.RESUME, Count.GO_ON, Count.NO_ATTEMPT})
"""Counts that mean the end of a wait."""


class TurnStanding:
    """Standing of a session since `since`: its events so far say whose turn it is."""

    __slots__ = ("asked", "held", "paused", "phase", "since", "turn", "written")

    def __init__(self, at: float) -> None:
        """Begin with an agent at work."""
        self.since = at
        self.turn = Turn.AGENT
        self.asked = self.held = False
        self.paused: set[str] = set()
        self.phase, self.written = "", 0.0

    @property
    def whose(self) -> Turn:
        """Party whose turn it is."""
        if self.paused:
            return Turn.REST
        if self.asked:
            return Turn.PERSON
        return Turn.REST if self.held else self.turn

    def advance(self, at: float) -> Span:
        """Go on to `at`; time before a clock was set back does not count."""
        span = Span(self.whose, min(self.since, at), at)
        self.since = at
        return span

    def take(self, event: Event, at: float) -> list[Span]:
        """Go on to an event that was at `at`; return the spans until then."""
        spans = []
        if isinstance(event, events.Decided):
            spans = self.take_phase(event.phase, event.written_at, at)
        spans.append(self.advance(at))
        if change := CHANGES.get(type(event)):
            change(self, event)
        return spans

    def take_phase(self, phase: str, written: float, at: float) -> list[Span]:
        """Learn by `at` that the agent has written `phase`, at `written` or, if that is 0, then.

        A phase that is known already changes nothing.
        """
        if not phase or (written == self.written if written else phase == self.phase):
            return []
        self.phase, self.written = phase, written
        # It was written after all that is known already, whatever became of the clock.
        is_later = self.since <= at
        spans = [self.advance(max(self.since, min(written or at, at)))] if is_later else []
        self._reset(_find_turn(phase))
        return spans

    def _reset(self, turn: Turn) -> None:
        self.turn, self.asked, self.held = turn, False, False

    def take_step(self, step: events.StepDone) -> None:
        """Learn that a step was done, or refused for good."""
        if step.trouble and not step.result:
            return
        counts = BY_NAME[step.row].counts if step.row in BY_NAME else Count.NONE
        if counts in GOES_ON:
            self.asked = self.held = False
        elif step.verb in TELLING and counts not in NUDGES:
            self._reset(Turn.AGENT)
        elif step.verb == StepVerb.PARK:
            self.held = True
        elif step.result.startswith(UNASKED):
            pass
        elif step.verb in ASKING and step.need != NeedKind.REVIEW:
            self.asked = True

    def take_decision(self, decided: events.Decided) -> None:
        """Learn what was decided: an answer on the forge has no event of its own."""
        if decided.row == "reply":
            self._reset(Turn.AGENT)

    def take_message(self, message: events.MessageSent) -> None:
        """Learn that the agent got a message; one by a person answers what it has asked."""
        if not message.sender:
            self.asked = False

    def begin(self, _: Event) -> None:
        """Learn that it is the agent's turn again."""
        self._reset(Turn.AGENT)

    def pause(self, paused: events.Paused) -> None:
        """Learn that a person has paused it, or all that it belongs to."""
        self.paused.add(paused.what)

    def resume(self, resumed: events.Resumed) -> None:
        """Learn that this pause is over."""
        self.paused.discard(resumed.what)


CHANGES: dict[type[Event], Callable[[TurnStanding, Any], None]] = {
    events.StepDone: TurnStanding.take_step,
    events.Decided: TurnStanding.take_decision,
    events.MessageSent: TurnStanding.take_message,
    events.Paused: TurnStanding.pause,
    events.Resumed: TurnStanding.resume,
    events.Claimed: TurnStanding.begin,
    events.Started: TurnStanding.begin,
    events.Reply: TurnStanding.begin,
    events.RecoverAsked: TurnStanding.begin,
}
"""Changes by each kind of event; other kinds change nothing."""


def _find_turn(phase: str) -> Turn:
    try:
        return OF_PHASES.get(Phase(phase), Turn.AGENT)
    except ValueError:
        return Turn.AGENT


def is_end(event: Event) -> bool:
    """Whether the event ends the session."""
    if isinstance(event, events.StepDone):
        return event.verb == StepVerb.FORGET
    if isinstance(event, events.Kill):
        return event.done
    return isinstance(event, events.LetGo | events.Over)
