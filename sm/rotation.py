"""What the rotation of an agent's context needs next: a pure function of its record and the facts.

A session has one record, whoever wants its context replaced: the agent by `sm handoff`, the
monitor at a threshold, a person by `sm cycle`. So these cannot get in each other's way. Every act
may be repeated: it is asked for until the facts show that it has happened. docs/CONTEXT.md tells
the story; `tests/test_rotation.py` walks it in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct, structs

REQUESTS, CLEARS, RESUMES = 2, 2, 2
"""So often each is tried: once, and once more."""
TRIES = 3
"""So often a clear may fail; after each failure the agent has a turn's time."""


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
    interrupted: bool = False
    clears: int = 0
    cleared: bool = False
    """The agent CLI has taken the command, but tells of a new context only with its next prompt."""
    relaunched: bool = False
    generation: int = 0
    """The launch by which the agent is started anew; 0: not yet."""
    resumes: int = 1
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
    steps: tuple[tuple[Step, float], ...] = ()
    """Each step, and when it was begun, in order."""

    @property
    def holds(self) -> bool:
        """Whether nothing but its own messages may reach the agent."""
        return self.step is not Step.VERIFY and not self.postponed_at

    @property
    def key(self) -> str:
        """The message that the step is about, '' where it is about none."""
        return {
            Step.REQUEST: f"ask{self.requests}",
            Step.DOCUMENT: "sections" if self.sections_asked else "",
            Step.RESUME: f"resume{self.resumes}",
            Step.VERIFY: "confirm" if self.confirmed else "",
        }.get(self.step, "")


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


@dataclass(frozen=True)
class Document:
    """What the agent has written since it was asked; `missing` are sections that it lacks."""

    path: str
    written_at: float
    empty: bool = False
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
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
    clear_s: float = 5
    obstacle_s: float = 600
    relaunch_s: float = 60
    resume_s: float = 120
    verify_s: float = 60
    answer_s: float = 600


@dataclass(frozen=True)
class Standing:
    """What is known of the agent at one moment. Times are seconds since 1970.

    `accepted` tells when it got each message of the rotation, by key; `waiting` are those that
    nobody has handed over yet, and `lost` those of which all that could be done has been done.
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
    compacted_at: float = 0.0
    worked_at: float = 0.0
    """When it last ended a turn or used a tool."""
    parked: bool = False
    """Its API gives it no answer, and will again."""
    document: Document | None = None
    readable: bool = True
    """Whether the record's document is there, a plain file that can be read."""
    accepted: Mapping[str, float] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Move:
    """One act, with the record as it is to be written before; `until`: look again at the latest."""

    act: Act
    record: Rotation
    reason: str = ""
    until: float = float("inf")


def decide(record: Rotation, seen: Standing, limits: Limits) -> Move:
    """What is to be done now."""
    if not seen.alive:
        relaunching = record.step is Step.CLEAR and record.relaunched
        due = relaunching and seen.now < record.since + limits.relaunch_s
        return Move(Act.RELAUNCH if due else Act.WAIT, record)  # or the session's own recovery
    if record.step in _BEFORE and _is_fresh(record, seen):
        return _begun_anew(record, seen, limits)
    return _STEPS[record.step](record, seen, limits)


_BEFORE = (Step.REQUEST, Step.DOCUMENT, Step.QUIET, Step.CLEAR)


def _is_fresh(record: Rotation, seen: Standing) -> bool:
    return record.cleared or bool(seen.context and seen.context != record.context)


def _begun_anew(r: Rotation, seen: Standing, limits: Limits) -> Move:
    """The agent is in another context: by our clear, a person's, or as it was started anew."""
    if r.step is Step.CLEAR or (r.document and seen.begun != "clear"):
        return _resume(_to(r, Step.RESUME, seen), seen, limits)
    if seen.begun == "clear":
        return Move(Act.GIVE_UP, r, "a person has cleared its context")
    return Move(Act.GIVE_UP, r, "its agent was started anew before it had written a document")


def _to(r: Rotation, step: Step, seen: Standing, **changes: object) -> Rotation:
    """The record at the beginning of another step."""
    more = {"since": seen.now, "obstacle": "", "reported": False} | changes
    steps = r.steps if step is r.step else (*r.steps, (step, seen.now))
    return structs.replace(r, step=step, steps=steps, **more)


def _request(r: Rotation, seen: Standing, limits: Limits) -> Move:
    if r.document:
        return _quiet(_to(r, Step.QUIET, seen), seen, limits)
    if (at := seen.accepted.get(r.key)) is not None:
        return _document(_to(r, Step.DOCUMENT, seen, since=at), seen, limits)
    if seen.compacted_at > r.began_at:
        return Move(Act.GIVE_UP, r, COMPACTED)
    if seen.now >= r.since + limits.request_s or r.key in seen.lost:
        return Move(Act.GIVE_UP, r, "it could not be asked for a document")
    return Move(Act.TELL, r, until=r.since + limits.request_s)


COMPACTED = "its context was summed up before it had written a document"


def _document(r: Rotation, seen: Standing, limits: Limits) -> Move:
    """Since the agent has got the request, or the one for what is missing in its document."""
    found = seen.document if seen.document and not seen.document.empty else None
    if r.document:
        return _quiet(_to(r, Step.QUIET, seen), seen, limits)
    if found and r.sections_asked:
        return _completed(r, found, seen, limits)
    if found:
        return _written(r, found, seen, limits)
    if seen.compacted_at > r.began_at:
        return Move(Act.GIVE_UP, r, COMPACTED)
    if not _is_over(r.since, seen) and seen.now < r.since + limits.document_s:
        return Move(Act.WAIT, r, until=r.since + limits.document_s)
    if r.requests >= REQUESTS:
        return Move(Act.GIVE_UP, r, "it has written no document, asked twice")
    return _request(_to(r, Step.REQUEST, seen, requests=r.requests + 1), seen, limits)


def _is_over(asked_at: float, seen: Standing) -> bool:
    """Whether the turn is over in which it was asked: then nothing more is to be expected."""
    return seen.idle_since is not None and seen.idle_since > asked_at


def _written(r: Rotation, found: Document, seen: Standing, limits: Limits) -> Move:
    whole_at = found.written_at + limits.settled_s
    if not _is_over(r.since, seen) and seen.now < whole_at:
        return Move(Act.WAIT, r, until=whole_at)
    if found.missing:
        return _completed(_to(r, Step.DOCUMENT, seen, sections_asked=True), found, seen, limits)
    return _quiet(_to(r, Step.QUIET, seen, document=found.path), seen, limits)


def _completed(r: Rotation, found: Document, seen: Standing, limits: Limits) -> Move:
    """It was asked, once, for the sections that its document lacks; then that has to do."""
    asked_at = seen.accepted.get(r.key)
    late = seen.now >= r.since + limits.document_s
    if asked_at is None and not late:
        return Move(Act.TELL, r, until=r.since + limits.document_s)
    settled = not found.missing and seen.now >= found.written_at + limits.settled_s
    if late or settled or _is_over(asked_at or r.since, seen):
        return _quiet(_to(r, Step.QUIET, seen, document=found.path), seen, limits)
    until = min(r.since + limits.document_s, found.written_at + limits.settled_s)
    return Move(Act.WAIT, r, until=max(until, seen.now + 1))


def _quiet(r: Rotation, seen: Standing, limits: Limits) -> Move:
    """Until the turn is over. The agent's own wish ends no turn; a full context has to."""
    since = seen.idle_since
    if since is not None and since > r.postponed_at:
        return _clear(_to(r, Step.CLEAR, seen, postponed_at=0.0), seen, limits)
    if seen.background_since is not None:
        until = max(seen.background_since, r.since) + limits.background_s
        if seen.now >= until:
            return _clear(_to(r, Step.CLEAR, seen, postponed_at=0.0), seen, limits)
        return Move(Act.WAIT, r, until=until)
    if r.cause is Cause.HANDOFF or r.interrupted or r.postponed_at or since is not None:
        return Move(Act.WAIT, r)
    if seen.now >= r.since + limits.grace_s:
        return Move(Act.INTERRUPT, structs.replace(r, interrupted=True))
    return Move(Act.WAIT, r, until=r.since + limits.grace_s)


def _clear(r: Rotation, seen: Standing, limits: Limits) -> Move:
    if not seen.readable and not r.kept:
        return _without_document(r, seen, limits)
    if r.obstacle:
        return _blocked(r, seen, limits)
    if not r.clears:
        r = structs.replace(r, clears=1, since=seen.now)
    if r.relaunched:
        if seen.now < r.since + limits.relaunch_s:
            return Move(Act.RELAUNCH, r, until=r.since + limits.relaunch_s)
        return _failed(r, seen)
    if seen.now < r.since + limits.clear_s:
        return Move(Act.CLEAR, r, until=r.since + limits.clear_s)
    if r.clears < CLEARS:
        return _clear(structs.replace(r, clears=r.clears + 1, since=seen.now), seen, limits)
    return Move(Act.RELAUNCH, structs.replace(r, relaunched=True, since=seen.now))


def _blocked(r: Rotation, seen: Standing, limits: Limits) -> Move:
    """Something is in the way, a person perhaps: it is tried again and again, and told of once."""
    if not r.reported and seen.now >= r.since + limits.obstacle_s:
        return Move(Act.REPORT, structs.replace(r, reported=True), r.obstacle)
    return Move(Act.CLEAR, structs.replace(r, clears=max(r.clears, 1)))


def _without_document(r: Rotation, seen: Standing, limits: Limits) -> Move:
    if r.cause is Cause.HANDOFF or r.requests >= REQUESTS:
        return Move(Act.GIVE_UP, r, f"its document cannot be read any more: {r.document}")
    again = _to(r, Step.REQUEST, seen, document="", requests=r.requests + 1)
    return _request(again, seen, limits)


def _failed(r: Rotation, seen: Standing) -> Move:
    if r.failures + 1 >= TRIES:
        return Move(Act.GIVE_UP, r, "its context could not be cleared")
    anew = _to(
        r, Step.QUIET, seen, clears=0, relaunched=False, generation=0, failures=r.failures + 1
    )
    return Move(Act.WAIT, structs.replace(anew, postponed_at=seen.now), "the clear had no effect")


def _resume(r: Rotation, seen: Standing, limits: Limits) -> Move:
    """The context is new, as far as is known; its first prompt comes from us, once."""
    if (at := seen.accepted.get(r.key)) is not None:
        if seen.context and seen.context == r.context:
            return _not_fresh(r, seen, limits)
        if r.cause is Cause.HANDOFF:
            return Move(Act.FINISH, r)
        return _verify(_to(r, Step.VERIFY, seen, since=at), seen, limits)
    if r.key in seen.lost:
        if r.resumes >= RESUMES:
            return Move(Act.GIVE_UP, r, "its new context has not got its prompt")
        r = _to(r, Step.RESUME, seen, resumes=r.resumes + 1)
    if not r.reported and seen.now >= r.since + limits.obstacle_s:
        return Move(Act.REPORT, structs.replace(r, reported=True), "its prompt cannot be typed")
    until = r.since + limits.obstacle_s
    return Move(Act.TELL, r, until=until if not r.reported else float("inf"))


def _not_fresh(r: Rotation, seen: Standing, limits: Limits) -> Move:
    """The prompt has shown that the clear before it had no effect."""
    again = _to(r, Step.CLEAR, seen, cleared=False, resumes=r.resumes + 1)
    if r.resumes >= RESUMES:
        return _failed(again, seen)
    return _quiet(_to(again, Step.QUIET, seen, clears=1), seen, limits)


def _verify(r: Rotation, seen: Standing, limits: Limits) -> Move:
    """It goes on when it has used a tool, or ended its turn, since it got its prompt."""
    if seen.worked_at > r.since:
        return Move(Act.FINISH, r)
    if seen.parked:
        return Move(Act.WAIT, structs.replace(r, since=max(r.since, seen.now)))
    if not r.confirmed and seen.now >= r.since + limits.verify_s:
        return Move(Act.TELL, _to(r, Step.VERIFY, seen, confirmed=True))
    if not r.confirmed:
        return Move(Act.WAIT, r, until=r.since + limits.verify_s)
    if seen.now >= r.since + limits.answer_s:
        return Move(Act.GIVE_UP, r, "nothing shows that it goes on")
    return Move(Act.TELL, r, until=r.since + limits.answer_s)


_STEPS: dict[Step, Callable[[Rotation, Standing, Limits], Move]] = {
    Step.REQUEST: _request,
    Step.DOCUMENT: _document,
    Step.QUIET: _quiet,
    Step.CLEAR: _clear,
    Step.RESUME: _resume,
    Step.VERIFY: _verify,
}
