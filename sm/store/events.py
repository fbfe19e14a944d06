"""Events of the journal: their kinds, and the fields of each kind.

docs/EVENTS.md tells people what each field means. `sm.views.event_words` has the words for them.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class EventKind(StrEnum):
    """Kind of the event that a line of the journal tells."""

    CLAIMED = "claimed"
    PLACED = "placed"
    STARTED = "started"
    TEXT = "text"
    PASSED_OVER = "passed-over"
    MONITOR = "monitor"
    DECIDED = "decided"
    STEP = "step"
    DROPPED = "dropped"
    WAITING = "waiting"
    REPLY = "reply"
    CHAT = "chat"
    RECOVER = "recover"
    KILL = "kill"
    PAUSED = "paused"
    RESUMED = "resumed"
    LET_GO = "let-go"
    OVER = "over"
    STRAYS = "strays"
    RENAMED = "renamed"
    ADOPTED = "adopted"
    MESSAGE = "message"
    OUTCOME = "outcome"
    CANCELLED = "cancelled"
    TOLD = "told"
    CONTEXT = "context"
    COMPACTION = "compaction"
    ROTATION = "rotation"
    PERSON = "person"
    LOCK = "lock"
    PLUGIN = "plugin"
    PROBLEM = "problem"


class RotationStep(StrEnum):
    """Progress of the replacement of a context."""

    BEGUN = "begun"
    HANDOFF = "handoff"
    DOCUMENT = "document"
    ASKED = "asked"
    INTERRUPTED = "interrupted"
    CLEARED = "cleared"
    BLOCKED = "blocked"
    RELAUNCHED = "relaunched"
    FINISHED = "finished"
    GIVEN_UP = "given-up"


class MessageEnd(StrEnum):
    """End of a message that was queued; docs/MESSAGES.md has the words.

    GIVEN_BACK: its turn was interrupted, and the agent took it back with that: it waits again.
    """

    ACCEPTED = "accepted"
    TYPED = "typed"
    REFUSED = "refused"
    GIVEN_BACK = "given-back"


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """Something that happened, `at` seconds since 1970, to a session, '' for none.

    `sm.store.journal.record` sets `at`.
    """

    at: float = 0.0
    session: str = ""


class Claimed(Event, frozen=True, kw_only=True, tag=EventKind.CLAIMED.value):
    """The issue is taken: `won` just now, `ours` from before, or `placed` here by another `sm`."""

    how: str = ""


class Placed(Event, frozen=True, kw_only=True, tag=EventKind.PLACED.value):
    """Another host has the issue now, by this attempt."""

    host: str
    attempt: int
    runner: str = ""


class Started(Event, frozen=True, kw_only=True, tag=EventKind.STARTED.value):
    """An agent was started for the issue, or the session, that is called `title`."""

    title: str = ""


class TextTaken(Event, frozen=True, kw_only=True, tag=EventKind.TEXT.value):
    """The issue's title and text were taken: `first`, or `anew` because they were lost."""

    how: str = ""
    hash: str = ""


class PassedOver(Event, frozen=True, kw_only=True, tag=EventKind.PASSED_OVER.value):
    """Words of an account that is not trusted were kept from the agent.

    `what` is a comment, or an edit of the issue's title or text, of a review or a remark in one.
    `author` is '' where the forge does not say who has edited it.
    """

    what: str = ""
    author: str = ""


class Monitor(Event, frozen=True, kw_only=True, tag=EventKind.MONITOR.value):
    """Change of the session's monitor, in a word."""

    state: str = ""


class Decided(Event, frozen=True, kw_only=True, tag=EventKind.DECIDED.value):
    """A row of the reaction matrix applied. `phase` is what the agent had written, '' for nothing.

    `phase` is the text of the phase file's sentinel, `reason` what the agent gave with it, and
    `written_at` when, in seconds since 1970, 0 if that is not known. `limits` are those that the
    row is about, as they were in force then: seconds, or counts.
    """

    row: str
    phase: str = ""
    reason: str = ""
    limits: dict[str, float] = {}
    written_at: float = 0.0


class StepDone(Event, frozen=True, kw_only=True, tag=EventKind.STEP.value):
    """A step of a decision was done, or refused for good.

    `verb` is a word of docs/PROTOCOL.md. `result` says what came of it: the message's name, the
    number of a pull request, a commit, or ''. `trouble` says what was refused.

    `need` is what a person is needed for from now on (`sm.base.need`), '' for nothing; `text` says
    it in one sentence, and `command` answers it.
    """

    verb: str
    row: str = ""
    result: str = ""
    trouble: str = ""
    need: str = ""
    text: str = ""
    command: str = ""


class Dropped(Event, frozen=True, kw_only=True, tag=EventKind.DROPPED.value):
    """A decision was dropped, as it had lost its point."""

    row: str
    reason: str = ""


class Waiting(Event, frozen=True, kw_only=True, tag=EventKind.WAITING.value):
    """A step cannot be done now and is tried again."""

    reason: str = ""


class Reply(Event, frozen=True, kw_only=True, tag=EventKind.REPLY.value):
    """A person answered the agent, or the session `author` did."""

    author: str
    text: str = ""


class FromChat(Event, frozen=True, kw_only=True, tag=EventKind.CHAT.value):
    """The agent was handed an entry of a handoff that a chat had written."""

    type: str
    entry: int
    handoff: str


class RecoverAsked(Event, frozen=True, kw_only=True, tag=EventKind.RECOVER.value):
    """A person asked for a restart of the agent."""


class Kill(Event, frozen=True, kw_only=True, tag=EventKind.KILL.value):
    """A person ended the session. `done`: it is gone; else what ends it follows."""

    done: bool = False


class Paused(Event, frozen=True, kw_only=True, tag=EventKind.PAUSED.value):
    """A person paused the session; without one the project `what`, or everything if that is ''."""

    what: str = ""
    by: str = ""
    reason: str = ""


class Resumed(Event, frozen=True, kw_only=True, tag=EventKind.RESUMED.value):
    """A person let go on what was paused; `what` is as in `paused`."""

    what: str = ""
    by: str = ""


class LetGo(Event, frozen=True, kw_only=True, tag=EventKind.LET_GO.value):
    """The claim was given up: the issue was settled while the session's files were lost."""


class Over(Event, frozen=True, kw_only=True, tag=EventKind.OVER.value):
    """A session without an issue has ended."""

    how: str = ""


class StraysEnded(Event, frozen=True, kw_only=True, tag=EventKind.STRAYS.value):
    """Processes that an agent had left running were ended."""

    processes: str = ""


class Renamed(Event, frozen=True, kw_only=True, tag=EventKind.RENAMED.value):
    """The session is called `name` from now on."""

    name: str = ""


class Adopted(Event, frozen=True, kw_only=True, tag=EventKind.ADOPTED.value):
    """The session has another `parent`, '' for none."""

    parent: str = ""


class MessageSent(Event, frozen=True, kw_only=True, tag=EventKind.MESSAGE.value):
    """A message was sent to the session's agent. `sender` is a session's address, '' for a person.

    `status` says how far it had come at once.
    """

    id: str
    mode: str
    sender: str = ""
    status: str = ""


class MessageOutcome(Event, frozen=True, kw_only=True, tag=EventKind.OUTCOME.value):
    """Outcome of a message that a person or a session had sent to the session's agent."""

    id: str
    outcome: MessageEnd


class Cancelled(Event, frozen=True, kw_only=True, tag=EventKind.CANCELLED.value):
    """A message was taken back. `handed`: the agent may have read it all the same."""

    id: str
    handed: bool = False


class Told(Event, frozen=True, kw_only=True, tag=EventKind.TOLD.value):
    """The agent was told what happened in another session."""

    text: str = ""


class ContextNotice(Event, frozen=True, kw_only=True, tag=EventKind.CONTEXT.value):
    """The agent was told how full its context is. `notice` is the threshold, '' if not known."""

    notice: str = ""
    percent: float | None = None
    text: str = ""


class Compacted(Event, frozen=True, kw_only=True, tag=EventKind.COMPACTION.value):
    """The agent CLI summed the context up: `auto` by itself, `manual` as it was asked to."""

    trigger: str = ""


class Rotation(Event, frozen=True, kw_only=True, tag=EventKind.ROTATION.value):
    """A step of the replacement of a context. Which of the other fields are set depends on `step`.

    `task` is what the new context has named: '' for nothing, None where it was not asked.
    """

    step: RotationStep
    cause: str = ""
    percent: float | None = None
    document: str = ""
    message: str = ""
    text: str = ""
    attempt: int = 0
    result: str = ""
    reason: str = ""
    took_s: float | None = None
    task: str | None = None


class PersonTold(Event, frozen=True, kw_only=True, tag=EventKind.PERSON.value):
    """A person was told something."""

    text: str = ""


class LockRemoved(Event, frozen=True, kw_only=True, tag=EventKind.LOCK.value):
    """A lock that a killed git had left behind was removed."""

    path: str = ""


class FromPlugin(Event, frozen=True, kw_only=True, tag=EventKind.PLUGIN.value):
    """Something that a plugin has to tell; the plugin names `event`, and has the words for it."""

    event: str
    text: str = ""


class Problem(Event, frozen=True, kw_only=True, tag=EventKind.PROBLEM.value):
    """Something went wrong."""

    text: str = ""


KINDS: tuple[type[Event], ...] = tuple(Event.__subclasses__())


def kind_of(event: Event | type[Event]) -> EventKind:
    """Return the event's kind."""
    return EventKind(str(event.__struct_config__.tag))
