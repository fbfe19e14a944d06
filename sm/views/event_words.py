"""Events in words: whole sentences for `sm trace` and `sm events`, few words for a table.

The journal has fields alone; every word that people read about an event is made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from sm.base import plugin
from sm.base.errors import UsageError
from sm.base.text import append_detail
from sm.store import events
from sm.store.events import Event, MessageEnd, Rotation, RotationStep, StepDone
from sm.views.row_words import ROWS, put_in_words, word_limit
from sm.views.step_words import describe_step, tell_step, tell_step_shortly

ASKED = {
    "ask1": "asked for a handoff document",
    "ask": "asked for a handoff document again",
    "sections": "asked for what the document lacks",
    "resume1": "the new context is to be told to resume",
    "resume": "the new context is to be told again to resume",
    "confirm": "asked whether it goes on",
}
"""Words for the messages of a rotation, by key; some keys are followed by a number."""

NUMBERED = re.compile(r"(ask|resume|confirm)\d+")

CLEARED = {
    "confirmed": "cleared",
    "taken": "cleared, which its next prompt will confirm",
    "unconfirmed": "the clear was not confirmed",
}
"""Words for what came of each try to clear the context."""


def _word_request(event: Rotation) -> str:
    numbered = NUMBERED.fullmatch(event.message)
    return ASKED.get(event.message) or (ASKED[numbered[1]] if numbered else event.message)


def _word_start(event: Rotation) -> str:
    if event.cause == LEAVE:
        return "its machine's time is over soon: a handoff document is asked for"
    at = "" if event.percent is None else f" at {event.percent:.0f}%"
    return f"cycle begins{at} ({event.cause})"


def _word_end(event: Rotation) -> str:
    took = f"finished, after {event.took_s or 0:.1f} s with '{event.document}'"
    if event.task is None:
        return took
    return f"{took}: it goes on with {event.task}" if event.task else f"{took}: {NO_TASK}"


NO_TASK = "it has not named its task"
LEAVE = "leave"
"""Cause of a rotation that clears nothing."""

ROTATION: dict[RotationStep, Callable[[Rotation], str]] = {
    RotationStep.BEGUN: _word_start,
    RotationStep.HANDOFF: lambda event: f"handoff with {event.document}",
    RotationStep.DOCUMENT: lambda event: f"its document is {event.document}",
    RotationStep.ASKED: lambda event: f"{event.message}: {event.text}",
    RotationStep.INTERRUPTED: lambda _: "turn interrupted",
    RotationStep.CLEARED: lambda event: f"clear {event.attempt}: {event.result}",
    RotationStep.BLOCKED: lambda event: f"not cleared yet: {event.reason}",
    RotationStep.RELAUNCHED: lambda _: "its agent is started anew: the clear had no effect",
    RotationStep.FINISHED: _word_end,
    RotationStep.GIVEN_UP: lambda event: f"given up: {event.reason}",
}


def describe_rotation(event: Rotation) -> str:
    """Say what happened, as `sm trace --json` has it."""
    return ROTATION[event.step](event)


def tell_rotation(event: Rotation) -> str:
    """Tell the event in a sentence."""
    if event.step is RotationStep.ASKED:
        return f"context: {_word_request(event)}: {event.text}"
    if event.step is RotationStep.CLEARED:
        again = f" (try {event.attempt})" if event.attempt > 1 else ""
        return f"context: {CLEARED.get(event.result, event.result)}{again}"
    return f"context: {describe_rotation(event)}"


def tell_rotation_shortly(event: Rotation) -> str:
    """Tell the event for a column of a table."""
    if event.step is RotationStep.ASKED:
        return f"context: {_word_request(event)}"
    return tell_rotation(event).partition(",")[0]


BY_HAND = "asked for by a person"

E = TypeVar("E", bound=Event)


class Wording(NamedTuple):
    """Words for the events of one kind.

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
    """Tell the event in words; the text has several lines if the event's own words have."""
    match event:
        case StepDone():
            return tell_step(event)
    words = WORDINGS[type(event)]
    if isinstance(words.told, str):
        return append_detail(words.told, words.detail(event))
    return words.told(event)


def tell_shortly(event: Event) -> str:
    """Tell the event for a column of a table: the fewest words that say it."""
    match event:
        case StepDone():
            return tell_step_shortly(event)
    shortly = WORDINGS[type(event)].shortly
    return shortly(event) if shortly else tell(event)


def name_event(event: Event) -> str:
    """Return what `sm trace --json` calls the event; of a step, the verb of the protocol."""
    match event:
        case StepDone():
            return event.verb
    return WORDINGS[type(event)].name


def describe(event: Event) -> str:
    """Return what `sm trace --json` says of the event beside its name, in one sentence."""
    match event:
        case StepDone():
            return describe_step(event)
    return WORDINGS[type(event)].detail(event)


# Decisions


def _decided(event: events.Decided) -> str:
    if not (words := ROWS.get(event.row)):
        return f"decided: {describe(event)}"
    if event.row in WITH_REASON:
        return append_detail(words, event.reason)
    limit = word_limit(event.row, event.limits)
    return f"{words} ({limit})" if limit else words


WITH_REASON = ("escalate", "failed")
"""Rows that answer to what the agent has just said; later events do not say it again."""


def _phase(event: events.Decided) -> str:
    return event.phase or "no phase"


# All kinds


def _passed_over(event: events.PassedOver) -> str:
    who = event.author or "an account that the forge does not name"
    article = "a" if event.what in ("review", "remark") else "the"
    what = "a comment" if event.what == "comment" else f"an edit of {article} {event.what}"
    return f"{what} by {who}"


def _paused(event: events.Paused) -> str:
    return append_detail(f"by {event.by}", event.reason)


def _tell_paused(event: events.Paused) -> str:
    return append_detail(f"{event.what or 'everything'} was paused by {event.by}", event.reason)


def _message(event: events.MessageSent) -> str:
    return f"{event.id} {event.mode} from {event.sender or 'a person'}: {event.status}"


ENDS = {
    MessageEnd.ACCEPTED: "the agent has it",
    MessageEnd.TYPED: "typed",
    MessageEnd.REFUSED: "refused",
    MessageEnd.GIVEN_BACK: "given back by the agent: it waits again",
}
"""Words for the ends of a message."""


def _cancelled(event: events.Cancelled) -> str:
    return f"{event.id} {'taken out of what is under way' if event.handed else 'taken back'}"


def _describe_added(event: events.FromPlugin) -> str:
    return append_detail(event.event, event.text)


def _tell_added(event: events.FromPlugin) -> str:
    """Tell it in the plugin's words; if the plugin is gone, as it was written."""
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
"""Words for an issue that was taken, but not claimed just now."""

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
            "answered",
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
            lambda event: append_detail("told", event.text),
        ),
        _wording(events.Compacted, "compaction", _compacted, _compacted),
        _wording(
            events.Rotation, "rotation", describe_rotation, tell_rotation, tell_rotation_shortly
        ),
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
"""Words of every kind of event but steps: theirs depend on more than their kind."""
