"""Terms in which the rotation of an agent's context is decided: record, facts, acts.

A session has one record. The agent begins it by `sm handoff`, the monitor at a threshold, a person
by `sm cycle`: so these cannot get in each other's way.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field

from sm.messages.ids import derive_id


class Cause(StrEnum):
    """Origin of a rotation: the agent, a threshold, a person, or a move of the session."""

    HANDOFF = "handoff"
    CYCLE = "cycle"
    COMMAND = "command"
    LEAVE = "leave"
    """The machine's time is short: with the document it is over, and nothing is cleared."""


class RotationStage(StrEnum):
    """Step of a rotation. From CLEAR on the old context may be gone: there is no way back."""

    REQUEST = "request"
    DOCUMENT = "document"
    QUIET = "quiet"
    CLEAR = "clear"
    RESUME = "resume"
    VERIFY = "verify"


class MessageKind(StrEnum):
    """Subject of a rotation's message. STOP ends a turn, and is no text."""

    ASK = "ask"
    SECTIONS = "sections"
    RESUME = "resume"
    CONFIRM = "confirm"
    STOP = "stop"


NUMBERED = (MessageKind.ASK, MessageKind.RESUME, MessageKind.CONFIRM)
"""Kinds that may have several messages in one rotation."""


class MessageKey(NamedTuple):
    """Name of one message of a rotation: its kind, and its number among its kind, from 1 on.

    As text it is `ask1` or `sections`: ids of messages and the journal are made of that.
    """

    kind: MessageKind
    number: int = 1

    def __str__(self) -> str:
        return f"{self.kind}{self.number}" if self.kind in NUMBERED else str(self.kind)


class RotationAct(StrEnum):
    """Next act. TELL: deliver the message of the record. REPORT: tell a person."""

    WAIT = "wait"
    TELL = "tell"
    INTERRUPT = "interrupt"
    CLEAR = "clear"
    RELAUNCH = "relaunch"
    REPORT = "report"
    FINISH = "finish"
    GIVE_UP = "give-up"


class RotationRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Record of one rotation, written before each act. Times are seconds since 1970.

    `context` is the agent's own id of the context to be replaced, '' if it tells none; `since` is
    when the step began, or its act was last tried. `asked_at` is when the agent asked for it, 0 if
    the agent did not.
    """

    id: str
    cause: Cause
    began_at: float
    step: RotationStage
    since: float
    context: str = ""
    launch: int = 0
    """The launch of the agent in that context, or in `fresh`; 0 in a record of an older version."""
    percent: float | None = None
    document: str = ""
    requests: int = 1
    sections_asked: bool = False
    asked_at: float = 0.0
    parked: bool = False
    """The agent cannot go on by itself, as its API has no answer, say: messages may pass."""
    resting: bool = False
    """The turn is over without a document: until it is asked again, messages may pass."""
    interrupted: bool = False
    """The turn that went on behind the document was stopped."""
    clears: int = 0
    """Number of clears that were typed, or were to be: each has an id of its own."""
    tried: int = 0
    """Number of clears since the last failure."""
    cleared: bool = False
    """The agent CLI has taken the command, but tells of a new context only with its next prompt."""
    relaunched: bool = False
    generation: int = 0
    """Number of the launch that starts the agent again; 0: that was not done yet."""
    resumes: int = 1
    fresh: str = ""
    """The context that has got the prompt."""
    proves: bool = False
    """Our view of its new context is complete: what cannot be read there, the agent has not
    said."""
    asked: bool = False
    """The agent was asked whether it goes on."""
    released: bool = False
    """The agent is at work and names no task: messages pass, and its context stays as it is."""
    again: bool = False
    """The new context has named no task, so it is replaced once more."""
    went_on: bool = False
    """The agent has used a tool, or ended a turn, since it got its prompt."""
    task: str = ""
    """Task that the agent has named as the one that it goes on with."""
    failures: int = 0
    postponed_at: float = 0.0
    """Time at which the clear failed; it is tried again after the next turn."""
    obstacle: str = ""
    """Obstacle to the clear, since `since`: the code of a refusal, '' for nothing."""
    reported: bool = False
    """A person was told of the obstacle."""
    folder: str = ""
    """Folder in which the document is looked for."""
    kept: bool = False
    """There is a copy of the document."""
    before: tuple[str, ...] = ()
    """Documents that were there already when the document was asked for."""
    beside: tuple[str, ...] | None = None
    """Documents of the folder above, where the document counts as well; None if others use that."""
    found: str = ""
    """The stamp of the document that is there now, seen first at `found_at`."""
    found_at: float = 0.0
    steps: tuple[tuple[RotationStage, float], ...] = ()
    """Steps in order, each with the time at which it was begun."""

    @property
    def resumed_at(self) -> float:
        """Time since which the context is a new one, as far as is known."""
        return max(
            (at for step, at in self.steps if step is RotationStage.RESUME), default=self.since
        )

    @property
    def holds(self) -> bool:
        """Whether only the rotation's own messages may reach the agent."""
        if self.step is RotationStage.VERIFY:
            return not (self.released or self.parked)
        return not (self.postponed_at or self.parked or self.resting)

    @property
    def must_go_on(self) -> bool:
        """Whether the old context may be gone, and the next one has not begun with its task.

        A pause would leave the agent without a task then. A clear with an obstacle was not typed.
        """
        if self.step is RotationStage.CLEAR:
            return self.relaunched or self.tried > bool(self.obstacle)
        return self.step is RotationStage.RESUME

    @property
    def is_replaced(self) -> bool:
        """Whether the agent's context is another one than the one that was to be replaced."""
        return self.again or self.step in (RotationStage.RESUME, RotationStage.VERIFY)

    @property
    def key(self) -> MessageKey | None:
        """Key of the message that the step is about, None if it is about none."""
        return {
            RotationStage.REQUEST: MessageKey(MessageKind.ASK, self.requests),
            RotationStage.DOCUMENT: MessageKey(MessageKind.SECTIONS)
            if self.sections_asked
            else None,
            RotationStage.RESUME: MessageKey(MessageKind.RESUME, self.resumes),
            RotationStage.VERIFY: MessageKey(MessageKind.CONFIRM, self.resumes)
            if self.asked
            else None,
        }.get(self.step)

    def list_keys(self) -> tuple[MessageKey, ...]:
        """List the keys of all that may have been told so far, and of the next prompt."""
        numbers = range(1, self.resumes + 2)
        return (
            *(MessageKey(MessageKind.ASK, number) for number in range(1, self.requests + 1)),
            MessageKey(MessageKind.SECTIONS),
            *(MessageKey(MessageKind.RESUME, number) for number in numbers),
            *(MessageKey(MessageKind.CONFIRM, number) for number in numbers),
        )

    def make_message_id(self, key: MessageKey) -> str:
        """Make the id of one of its messages: always the same, so that none is sent twice."""
        return derive_id(f"{self.id}:{key}")


def begin(
    ident: str, cause: Cause, now: float, context: str, document: str = "", *, launch: int = 0
) -> RotationRecord:
    """Begin a record.

    With a document it waits for the turn's end, else the document is asked for.
    """
    step = RotationStage.QUIET if document else RotationStage.REQUEST
    return RotationRecord(
        id=ident,
        cause=cause,
        began_at=now,
        step=step,
        since=now,
        context=context,
        launch=launch,
        document=document,
        steps=((step, now),),
    )


class HandoffDocument(Struct, frozen=True):
    """Document that the agent has written since the request; it lacks `missing` and `lines`.

    `missing` are sections, and `lines` are lines of its header. `stamp` is another one once it is
    written again; `written_at` may be of another machine's clock.
    """

    path: str
    stamp: str
    written_at: float
    missing: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def lacks(self) -> bool:
        """Whether the agent has to be asked for anything."""
        return bool(self.missing or self.lines)


class StepTimeouts(Struct, frozen=True):
    """Limits of each step, in seconds."""

    request_s: float = 1800
    """Time for an agent that cannot be told anything, as a dialog is open, for instance."""
    document_s: float = 300
    """Time from the first request on; both are made within it, unless its turn goes on."""
    settled_s: float = 30
    """Time after which an unchanged document is whole, though the turn goes on."""
    grace_s: float = 60
    """Time that the turn may go on when the document is whole."""
    background_s: float = 600
    """Time that background tasks are waited for; Claude Code keeps them through a clear."""
    look_s: float = 60
    """Interval of looks for events that no hook tells of, an interruption by hand for instance."""
    clear_s: float = 5
    obstacle_s: float = 600
    relaunch_s: float = 60
    verify_s: float = 60
    say_s: float = 5
    """Interval of looks at what the agent says in its new context."""
    written_s: float = 5
    """Time after a turn's end in which its last words may not be written down yet."""
    answer_s: float = 600


class RotationFacts(Struct, frozen=True):
    """Facts about the agent at one moment. Times are seconds since 1970.

    `accepted` tells when it got each message of the rotation, by key; `lost` are those for which
    all that could be done has been done.
    """

    now: float
    alive: bool = True
    idle_since: float | None = None
    """The turn is over, and nothing of it runs in the background."""
    background_since: float | None = None
    """The turn is over, and something runs in the background."""
    context: str = ""
    begun: str = ""
    """Beginning of its context: startup, resume, clear or compact."""
    begun_at: float = 0.0
    """Time at which it began; 0 if no hook has told: long ago."""
    launch: int = 0
    """Number of this launch of the agent: 1, and one more for each new start; 0 if not known."""
    launched_at: float = 0.0
    compacted_at: float = 0.0
    worked_at: float = 0.0
    """Time at which the agent last ended a turn or used a tool."""
    resumed_at: float = 0.0
    """Time at which it went on last after a pause: no time counts from before that."""
    parked: bool = False
    """The agent's API gives it no answer, and will again."""
    relaunched: bool = False
    """The agent was started again by this rotation, and has not told of its context yet."""
    task: str = ""
    """Task that the agent has named in its new context as the one that it goes on with."""
    proves: bool = False
    """Our view of its context is complete: what cannot be read there, the agent has not said."""
    others: bool = False
    """The agent has got a prompt in its new context that is not of the rotation."""
    hands_off: bool = False
    """The agent has asked for the next rotation, in its new context."""
    document: HandoffDocument | None = None
    readable: bool = True
    """Whether the record's document is there, a plain file that holds something."""
    accepted: Mapping[MessageKey, float] = field(default_factory=dict)
    lost: frozenset[MessageKey] = frozenset()


class Move(Struct, frozen=True):
    """Act, with the record as it is to be written before; `until`: look again at the latest."""

    act: RotationAct
    record: RotationRecord
    reason: str = ""
    until: float = float("inf")
