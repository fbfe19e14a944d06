"""The terms in which the rotation of an agent's context is decided: record, facts, acts.

A session has one record, whoever wants its context replaced: the agent by `sm handoff`, the
monitor at a threshold, a person by `sm cycle`. So these cannot get in each other's way.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field


class Cause(StrEnum):
    """Who wants it: the agent, a threshold, or a person."""

    HANDOFF = "handoff"
    CYCLE = "cycle"
    COMMAND = "command"


class Step(StrEnum):
    """How far it has come. From CLEAR on the old context may be gone: there is no way back."""

    REQUEST = "request"
    DOCUMENT = "document"
    QUIET = "quiet"
    CLEAR = "clear"
    RESUME = "resume"
    VERIFY = "verify"


class Act(StrEnum):
    """What is to be done now. TELL: deliver the message of `key`. REPORT: tell a person."""

    WAIT = "wait"
    TELL = "tell"
    INTERRUPT = "interrupt"
    CLEAR = "clear"
    RELAUNCH = "relaunch"
    REPORT = "report"
    FINISH = "finish"
    GIVE_UP = "give-up"


class Rotation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of one rotation, written before each act. Times are seconds since 1970.

    `context` is the agent's own id of the context to be replaced, '' where it tells none;
    `since` is when the step began, or its act was last tried.
    """

    id: str
    cause: Cause
    began_at: float
    step: Step
    since: float
    context: str = ""
    percent: float | None = None
    document: str = ""
    requests: int = 1
    sections_asked: bool = False
    parked: bool = False
    """It cannot go on by itself, as its API has no answer, for instance: messages may pass."""
    interrupted: bool = False
    """The turn that went on behind the document was stopped."""
    clears: int = 0
    """How many were typed, or were to be: each has an id of its own."""
    tried: int = 0
    """How many of them since the last failure."""
    cleared: bool = False
    """The agent CLI has taken the command, but tells of a new context only with its next prompt."""
    relaunched: bool = False
    generation: int = 0
    """The launch by which the agent is started anew; 0: nobody has done so yet."""
    resumes: int = 1
    fresh: str = ""
    """The context that has got the prompt."""
    confirmed: bool = False
    """It was asked whether it goes on."""
    failures: int = 0
    postponed_at: float = 0.0
    """When the clear failed; it is tried again after the next turn."""
    obstacle: str = ""
    """What is in the way of the clear, since `since`."""
    reported: bool = False
    """A person was told of the obstacle."""
    folder: str = ""
    """Where the document is looked for."""
    kept: bool = False
    """There is a copy of it."""
    before: tuple[str, ...] = ()
    """What was there already when the document was asked for."""
    found: str = ""
    """The stamp of the document that is there now, seen first at `found_at`."""
    found_at: float = 0.0
    steps: tuple[tuple[Step, float], ...] = ()
    """Each step, and when it was begun, in order."""

    @property
    def resumed_at(self) -> float:
        """Since when the context is a new one, as far as is known."""
        return max((at for step, at in self.steps if step is Step.RESUME), default=self.since)

    @property
    def holds(self) -> bool:
        """Whether nothing but its own messages may reach the agent."""
        return not (self.step is Step.VERIFY or self.postponed_at or self.parked)

    @property
    def key(self) -> str:
        """The message that the step is about, '' where it is about none."""
        return {
            Step.REQUEST: f"ask{self.requests}",
            Step.DOCUMENT: "sections" if self.sections_asked else "",
            Step.RESUME: f"resume{self.resumes}",
            Step.VERIFY: "confirm" if self.confirmed else "",
        }.get(self.step, "")


MESSAGES = ("ask1", "ask2", "sections", "confirm")
"""The keys of what is told in a rotation, but for the prompts of the new context."""


def keys(record: Rotation) -> tuple[str, ...]:
    """All that may have been told so far, and the prompt that would come next."""
    return (*MESSAGES, *(f"resume{number + 1}" for number in range(record.resumes + 1)))


def begin(ident: str, cause: Cause, now: float, context: str, document: str = "") -> Rotation:
    """A new record: with a document it waits for the turn's end, else the document is asked for."""
    step = Step.QUIET if document else Step.REQUEST
    return Rotation(
        id=ident,
        cause=cause,
        began_at=now,
        step=step,
        since=now,
        context=context,
        document=document,
        steps=((step, now),),
    )


class Document(Struct, frozen=True):
    """What the agent has written since it was asked; `missing` are sections that it lacks.

    `stamp` is another one once it is written again; `written_at` may be of another machine's clock.
    """

    path: str
    stamp: str
    written_at: float
    empty: bool = False
    missing: tuple[str, ...] = ()


class Limits(Struct, frozen=True):
    """How long each step may take, in seconds."""

    request_s: float = 1800
    """For an agent that cannot be told anything: as a dialog is open, for instance."""
    document_s: float = 300
    settled_s: float = 30
    """A document that has not changed for so long is whole, though the turn goes on."""
    grace_s: float = 60
    """So long the turn may go on when the document is whole."""
    background_s: float = 600
    """So long tasks in the background are waited for; Claude Code keeps them through a clear."""
    look_s: float = 60
    """What no hook tells of, an interruption by hand for instance, is looked for so often."""
    clear_s: float = 5
    obstacle_s: float = 600
    relaunch_s: float = 60
    verify_s: float = 60
    answer_s: float = 600


class Standing(Struct, frozen=True):
    """What is known of the agent at one moment. Times are seconds since 1970.

    `accepted` tells when it got each message of the rotation, by key; `lost` are those for which
    all that could be done has been done.
    """

    now: float
    alive: bool = True
    idle_since: float | None = None
    """Its turn is over, and nothing of it runs in the background."""
    background_since: float | None = None
    """Its turn is over, and something runs in the background."""
    context: str = ""
    begun: str = ""
    """How its context began: startup, resume, clear or compact."""
    begun_at: float = 0.0
    """0 where nobody has told: long ago."""
    compacted_at: float = 0.0
    worked_at: float = 0.0
    """When it last ended a turn or used a tool."""
    parked: bool = False
    """Its API gives it no answer, and will again."""
    relaunched: bool = False
    """It was started anew by this rotation, and has not told of its context yet."""
    document: Document | None = None
    readable: bool = True
    """Whether the record's document is there, a plain file that holds something."""
    accepted: Mapping[str, float] = field(default_factory=dict)
    lost: frozenset[str] = frozenset()


class Move(Struct, frozen=True):
    """One act, with the record as it is to be written before; `until`: look again at the latest."""

    act: Act
    record: Rotation
    reason: str = ""
    until: float = float("inf")
