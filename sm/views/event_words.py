"""Events in words: whole sentences for `sm trace` and `sm events`, few words for a table.

The journal has fields alone; every word that people read about an event is made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from sm.base import plugin
from sm.base.errors import UsageError
from sm.sessions.history import STOPPED, Verb
from sm.sessions.plan import FAILED
from sm.store import events
from sm.store.events import Event, MessageEnd, Rotation, RotationStep, StepDone
from sm.views.row_words import ROWS, put_in_words, word_limit

BY_HAND = "asked for by a person"

E = TypeVar("E", bound=Event)


class Wording(NamedTuple):
    """How the events of one kind are told.

    `name` and `detail` are what `sm trace --json` has always had of them. `told` is a sentence, or
    the words that stand before the detail. `shortly` is for a column of a table.
    """

    name: str
    detail: Callable[[Any], str]
    told: Callable[[Any], str] | str
    shortly: Callable[[Any], str] | None


def _wording(
    kind: type[E],
    name: str,
    detail: Callable[[E], str],
    told: Callable[[E], str] | str = "",
    shortly: Callable[[E], str] | None = None,
) -> tuple[type[Event], Wording]:
    return kind, Wording(name, detail, told or name, shortly)


def tell(event: Event) -> str:
    """The event in words; it has several lines if the words in it had."""
    match event:
        case StepDone():
            return _step(event)
    words = WORDINGS[type(event)]
    if isinstance(words.told, str):
        return _behind(words.told, words.detail(event))
    return words.told(event)


def tell_shortly(event: Event) -> str:
    """The same for a column of a table: the fewest words that say it."""
    match event:
        case StepDone():
            return _step_shortly(event)
    shortly = WORDINGS[type(event)].shortly
    return shortly(event) if shortly else tell(event)


def name_event(event: Event) -> str:
    """What `sm trace --json` calls the event; of a step it is the verb of the protocol."""
    match event:
        case StepDone():
            return event.verb
    return WORDINGS[type(event)].name


def describe(event: Event) -> str:
    """What `sm trace --json` has of the event beside its name, in one sentence."""
    match event:
        case StepDone():
            return event.result or event.trouble
    return WORDINGS[type(event)].detail(event)


def _behind(words: str, more: str) -> str:
    return f"{words}: {more}" if more else words


# Decisions and their steps


def _decided(event: events.Decided) -> str:
    if not (words := ROWS.get(event.row)):
        return f"decided: {describe(event)}"
    if event.row in WITH_REASON:
        return _behind(words, event.reason)
    limit = word_limit(event.row, event.limits)
    return f"{words} ({limit})" if limit else words


WITH_REASON = ("escalate", "failed")
"""The rows that answer to what the agent has just said; later ones do not say it again."""


def _phase(event: events.Decided) -> str:
    return event.phase or "no phase"


STEPS: dict[str, str] = {
    Verb.INJECT: "told the agent",
    Verb.CREATE_PHASE: "made the phase file anew",
    Verb.WRITE_CI_RESULT: "noted the result of CI",
    Verb.OPEN_PULL: "opened the pull request",
    Verb.RERUN_CI: "had CI run again",
    Verb.MERGE: "merged it",
    Verb.NOTIFY: "a person is needed",
    Verb.REMIND: "reminded the person",
    Verb.COMMENT: "commented on the issue",
    Verb.TELL: "told people",
    Verb.LABEL_BLOCKED: "labelled the issue as blocked",
    Verb.RESTORE_BACKLOG: "put the issue back into the backlog",
    Verb.CLEAN_LABELS: "took the labels of sm off the issue",
    Verb.CLOSE_ISSUE: "closed the issue",
    Verb.CLOSE_PULL: "closed the pull request",
    Verb.KILL: "ended the agent",
    Verb.START: "started the agent",
    Verb.RECOVER: "restarted the agent",
    Verb.MENTION: "told the agent at work",
    Verb.INTERRUPT: "interrupted its turn",
    Verb.HAND_OFF: "asked for a handoff document",
    Verb.LET_GO_ON: "let it go on",
    Verb.ADOPT_TEXT: "took over the edited text",
    Verb.ADOPT_REVIEW: "took over the edited review",
    Verb.KEEP_WORK: "kept its work in a branch of its own",
    Verb.REMOVE_WORKTREE: "removed the worktree",
    Verb.DELETE_BRANCH: "deleted the branch",
    Verb.DELETE_EMPTY_BRANCH: "deleted the branch, which has no work",
    Verb.RELEASE_CLAIM: "gave the claim up",
    Verb.FORGET: "ended the session",
}
"""What is told of a step that was done; the verb of another version is told as it is."""

REMOVED = "removed"
DONE = (REMOVED, STOPPED)
"""Results of steps that have done what they were to do: their words say so."""

NOT_DONE = ("kept", "not set", FAILED)
"""So begins the result of a step that has left things as they were."""


def _step(event: StepDone) -> str:
    more = describe(event)
    if event.verb == Verb.PARK:
        return _parked(event, more)
    if event.verb == Verb.INTERRUPT and event.result != STOPPED:
        return f"did not {event.verb}: {more}"
    if event.result.startswith(NOT_DONE) or (event.trouble and not event.result):
        return f"did not {event.verb}: {more}"
    if event.need:
        return _behind(STEPS.get(event.verb, event.verb), f"{event.text}. {event.command}")
    # Of a message the result is the name of a text, of other steps it is in words.
    return _behind(STEPS.get(event.verb, event.verb), "" if more in DONE else put_in_words(more))


def _parked(event: StepDone, more: str) -> str:
    """At a limit of what may be spent, or because its turn has failed."""
    return (
        f"held the session: {more}"
        if event.row.startswith("limit")
        else f"parked the session {more}"
    )


STEPS_SHORTLY: dict[str, str] = {
    Verb.INJECT: "told",
    Verb.NOTIFY: "asked",
    Verb.REMIND: "reminded",
    Verb.COMMENT: "commented",
    Verb.TELL: "told people",
}
"""The same in a table; what they are about is the name of a text there, told in words."""


def _step_shortly(event: StepDone) -> str:
    if event.verb == Verb.RECOVER:
        return "restarted"
    if event.verb == Verb.PARK:
        return f"parked {describe(event).partition(' (')[0]}"
    if event.verb in STEPS_SHORTLY:
        return _behind(STEPS_SHORTLY[event.verb], put_in_words(event.result) or event.trouble)
    return _step(event)


# The replacement of a context

ASKED = {
    "ask1": "asked for a handoff document",
    "ask": "asked for a handoff document again",
    "sections": "asked for what the document lacks",
    "resume1": "the new context is to be told to resume",
    "resume": "the new context is to be told again to resume",
    "confirm": "asked whether it goes on",
}
"""The messages of a rotation, by their keys; some stand for each one with that and a number."""

NUMBERED = re.compile(r"(ask|resume|confirm)\d+")

CLEARED = {
    "confirmed": "cleared",
    "taken": "cleared, which its next prompt will confirm",
    "unconfirmed": "the clear was not confirmed",
}
"""What came of each try to clear the context."""


def _asked(event: Rotation) -> str:
    numbered = NUMBERED.fullmatch(event.message)
    return ASKED.get(event.message) or (ASKED[numbered[1]] if numbered else event.message)


def _begun(event: Rotation) -> str:
    if event.cause == LEAVE:
        return "its machine's time is over soon: a handoff document is asked for"
    at = "" if event.percent is None else f" at {event.percent:.0f}%"
    return f"cycle begins{at} ({event.cause})"


def _finished(event: Rotation) -> str:
    took = f"finished, after {event.took_s or 0:.1f} s with '{event.document}'"
    if event.task is None:
        return took
    return f"{took}: it goes on with {event.task}" if event.task else f"{took}: {NO_TASK}"


NO_TASK = "it has not named its task"
LEAVE = "leave"
"""Of the causes, that nothing is cleared."""

ROTATION: dict[RotationStep, Callable[[Rotation], str]] = {
    RotationStep.BEGUN: _begun,
    RotationStep.HANDOFF: lambda event: f"handoff with {event.document}",
    RotationStep.DOCUMENT: lambda event: f"its document is {event.document}",
    RotationStep.ASKED: lambda event: f"{event.message}: {event.text}",
    RotationStep.INTERRUPTED: lambda _: "turn interrupted",
    RotationStep.CLEARED: lambda event: f"clear {event.attempt}: {event.result}",
    RotationStep.BLOCKED: lambda event: f"not cleared yet: {event.reason}",
    RotationStep.RELAUNCHED: lambda _: "its agent is started anew: the clear had no effect",
    RotationStep.FINISHED: _finished,
    RotationStep.GIVEN_UP: lambda event: f"given up: {event.reason}",
}


def _rotation_detail(event: Rotation) -> str:
    return ROTATION[event.step](event)


def _rotation(event: Rotation) -> str:
    if event.step is RotationStep.ASKED:
        return f"context: {_asked(event)}: {event.text}"
    if event.step is RotationStep.CLEARED:
        again = f" (try {event.attempt})" if event.attempt > 1 else ""
        return f"context: {CLEARED.get(event.result, event.result)}{again}"
    return f"context: {_rotation_detail(event)}"


def _rotation_shortly(event: Rotation) -> str:
    if event.step is RotationStep.ASKED:
        return f"context: {_asked(event)}"
    return _rotation(event).partition(",")[0]


# All kinds


def _passed_over(event: events.PassedOver) -> str:
    who = event.author or "an account that the forge does not name"
    article = "a" if event.what in ("review", "remark") else "the"
    what = "a comment" if event.what == "comment" else f"an edit of {article} {event.what}"
    return f"{what} by {who}"


def _paused(event: events.Paused) -> str:
    return _behind(f"by {event.by}", event.reason)


def _tell_paused(event: events.Paused) -> str:
    return _behind(f"{event.what or 'everything'} was paused by {event.by}", event.reason)


def _message(event: events.MessageSent) -> str:
    return f"{event.id} {event.mode} from {event.sender or 'a person'}: {event.status}"


ENDS = {
    MessageEnd.ACCEPTED: "the agent has it",
    MessageEnd.TYPED: "typed",
    MessageEnd.REFUSED: "refused",
    MessageEnd.GIVEN_BACK: "given back by the agent: it waits again",
}
"""What became of a message."""


def _cancelled(event: events.Cancelled) -> str:
    return f"{event.id} {'taken out of what is under way' if event.handed else 'taken back'}"


def _describe_added(event: events.FromPlugin) -> str:
    return _behind(event.event, event.text)


def _tell_added(event: events.FromPlugin) -> str:
    """By the words of the plugin; without it, which may be gone by now, as it was written."""
    if event.event not in plugin.list_parts("events"):
        return _describe_added(event)
    try:
        return str(plugin.load_part("events", event.event)(event.text))
    except UsageError:
        return _describe_added(event)


def _compacted(event: events.Compacted) -> str:
    late = ": handoff was too late" if event.trigger == "auto" else ""
    return f"Compaction triggered ({event.trigger}){late}"


CLAIMED = {
    "ours": "took the issue up again",
    "placed": "took on the issue, which was placed here",
}
"""How an issue was taken that was not claimed just now."""

WORDINGS: dict[type[Event], Wording] = dict(
    (
        _wording(
            events.Claimed,
            "claimed",
            lambda event: event.how,
            lambda event: CLAIMED.get(event.how, "claimed the issue"),
            lambda _: "claimed",
        ),
        _wording(
            events.Placed,
            "placed",
            lambda event: f"{event.host}, attempt {event.attempt}",
            lambda event: f"placed on {event.host}, attempt {event.attempt}",
            lambda event: f"on {event.host}",
        ),
        _wording(
            events.Started,
            "started",
            lambda event: event.title,
            "started the agent",
            lambda _: "started",
        ),
        _wording(
            events.TextTaken,
            "text",
            lambda event: event.how,
            lambda event: (
                "took the issue's text anew, as it was lost"
                if event.how == "anew"
                else "took the issue's text"
            ),
        ),
        _wording(events.PassedOver, "ignored", _passed_over, "kept from the agent"),
        _wording(
            events.Monitor,
            "monitor",
            lambda event: event.state,
            lambda event: f"monitor {event.state}",
        ),
        _wording(
            events.Decided,
            "decided",
            lambda event: f"{event.row} ({_phase(event)})",
            _decided,
            lambda event: put_in_words(event.row),
        ),
        _wording(
            events.Dropped,
            "dropped",
            lambda event: f"{event.row}: {event.reason}",
            lambda event: f"dropped ({put_in_words(event.row)}): {event.reason}",
        ),
        _wording(events.Waiting, "waiting", lambda event: event.reason, "waits for another try"),
        _wording(
            events.Reply,
            "reply",
            lambda event: f"{event.author}: {event.text}",
            "a person answered",
            lambda _: "answered",
        ),
        _wording(
            events.FromChat,
            "bridge",
            lambda event: f"{event.type} (entry {event.entry} of {event.handoff})",
            "handed over from the chat",
            lambda event: f"from the chat: {event.type}",
        ),
        _wording(
            events.RecoverAsked,
            "recover",
            lambda _: BY_HAND,
            lambda _: f"a restart was {BY_HAND}",
            lambda _: "restarted",
        ),
        _wording(
            events.Kill,
            "kill",
            lambda event: "ended and removed" if event.done else BY_HAND,
            lambda _: "a person ended the session",
        ),
        _wording(events.Paused, "paused", _paused, _tell_paused, lambda _: "paused"),
        _wording(
            events.Resumed,
            "resumed",
            lambda event: f"by {event.by}",
            lambda event: f"{event.what or 'everything'} goes on, says {event.by}",
            lambda _: "goes on",
        ),
        _wording(events.LetGo, "let go", lambda _: "it was settled while its state was lost"),
        _wording(events.Over, "over", lambda event: event.how),
        _wording(
            events.StraysEnded, "ended", lambda event: f"left by its agent: {event.processes}"
        ),
        _wording(events.Renamed, "renamed", lambda event: event.name),
        _wording(events.Adopted, "adopted", lambda event: f"by {event.parent or 'nobody'}"),
        _wording(events.MessageSent, "message", _message),
        _wording(
            events.MessageOutcome, "message", lambda event: f"{event.id} {ENDS[event.outcome]}"
        ),
        _wording(events.Cancelled, "message", _cancelled),
        _wording(events.Told, "told", lambda event: event.text),
        _wording(
            events.ContextNotice,
            "context",
            lambda event: event.text,
            "told the agent",
            lambda event: _behind("told", event.text),
        ),
        _wording(events.Compacted, "compaction", _compacted, _compacted),
        _wording(events.Rotation, "rotation", _rotation_detail, _rotation, _rotation_shortly),
        _wording(events.PersonTold, "person", lambda event: event.text, "let a person know"),
        _wording(
            events.LockRemoved,
            "lock",
            lambda event: event.path,
            "removed a lock that a killed git had left behind",
        ),
        _wording(events.FromPlugin, "plugin", _describe_added, _tell_added),
        _wording(events.Problem, "problem", lambda event: event.text),
    )
)
"""Of every kind but steps, whose words depend on more than their kind."""
