"""The story of a session, told from the journal: what happened, when, and what came of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

from msgspec import Struct

from sm.errors import SmError
from sm.history import Count, Verb
from sm.matrix import ROWS
from sm.session.health import FINISHED
from sm.store import journal
from sm.store.journal import Event
from sm.store.paths import Root, session_name
from sm.workflow.context import Context

BY_HAND = "asked for by a person"
AT_WORK = "still at work"
MATRIX = {row.name: row for row in ROWS}


class Entry(Struct, frozen=True):
    """An event and what it says to a person; `elapsed_s` since the event before, 0 at the first."""

    at: float
    elapsed_s: float
    event: str
    detail: str
    told: str


class Summary(Struct, frozen=True):
    """The story in short. `sessions`: how often it was begun. `took_s` is in seconds.

    `rotations`: how often its context was replaced.
    """

    outcome: str
    took_s: float
    sessions: int
    fixes: int
    rounds: int
    recoveries: int
    rotations: int = 0


class Story(Struct, frozen=True):
    """Everything that the journal has on one session, oldest first."""

    session: str
    entries: tuple[Entry, ...]
    summary: Summary


def story(ctx: Context, issue: int) -> Story:
    """What happened for `issue`; also when its session is long over.

    Raises:
        SmError: the journal has nothing on it.

    """
    name = session_name(ctx.project.name, issue)
    return story_of(ctx.root, name, f"issue #{issue} of '{ctx.project.name}'")


def story_of(root: Root, name: str, what: str) -> Story:
    """What happened in the session of that id; `what` is how a person calls it.

    Raises:
        SmError: the journal has nothing on it.

    """
    events = list(journal.read(root.journal, name))
    if not events:
        raise SmError(
            f"nothing is known of {what}: "
            f"no session has worked on it, as far as '{root.journal}' tells"
        )
    return Story(name, tuple(_entries(events)), summarise(events))


def _entries(events: list[Event]) -> Iterable[Entry]:
    for before, event in pairwise([events[0], *events]):
        yield Entry(event.at, event.at - before.at, event.event, event.detail, tell(event))


def tell(event: Event) -> str:
    """The event in words; may have several lines where somebody's words had."""
    told = WORDS.get(event.event)
    if told is not None:
        return told(event.detail)
    return f"{event.event}: {event.detail}" if event.detail else event.event


def tell_shortly(event: Event) -> str:
    """The same for a column of a table: the fewest words that say it."""
    shortly = SHORTLY.get(event.event)
    return shortly(event.detail) if shortly else tell(event)


def _after(words: str) -> Callable[[str], str]:
    return lambda detail: f"{words}: {detail}" if detail else words


def _row_name(detail: str) -> str:
    """The matrix row that a journal line begins with: `ci-failed (PHASE:awaiting_ci)`."""
    return detail.split(" ", 1)[0].rstrip(":")


def _decided(detail: str) -> str:
    name, _, phase = detail.partition(" ")
    row = MATRIX.get(name)
    if row is None:
        return f"decided: {detail}"
    steps = ", ".join(str(step) for step in row.steps)
    return f"{name} {phase}: {row.fact} → {steps}"


def _recover(detail: str) -> str:
    return f"a restart was {detail}" if detail == BY_HAND else _after("restarted the agent")(detail)


ROTATION = {
    "ask1": "asked for a handoff document",
    "ask2": "asked for a handoff document again",
    "sections": "asked for what the document lacks",
    "resume1": "the new context is to be told to resume",
    "resume": "the new context is to be told again to resume",
    "confirm": "asked whether it goes on",
}
"""The messages of a rotation, by their keys; `resume` stands for each one after the first."""

RESUMED_AGAIN = re.compile(r"resume\d+")

CLEARED = {
    "confirmed": "cleared",
    "taken": "cleared, which its next prompt will confirm",
    "unconfirmed": "the clear was not confirmed",
}
"""What came of each try to clear the context."""


def _rotation(detail: str) -> str:
    key, separator, text = detail.partition(": ")
    if key.startswith("clear ") and text in CLEARED:
        again = "" if key == "clear 1" else f" (try {key.removeprefix('clear ')})"
        return f"context: {CLEARED[text]}{again}"
    told = _told(key)
    return f"context: {told + separator + text if told else detail}"


def _told(key: str) -> str:
    known = ROTATION.get(key)
    return known or (ROTATION["resume"] if RESUMED_AGAIN.fullmatch(key) else "")


def _rotation_shortly(detail: str) -> str:
    told = _told(detail.partition(": ")[0].partition(",")[0].partition(" with ")[0])
    return f"context: {told}" if told else _rotation(detail).partition(",")[0]


WORDS: dict[str, Callable[[str], str]] = {
    "claimed": lambda how: "took the issue up again" if how == "ours" else "claimed the issue",
    "started": _after("started the agent"),
    "monitor": lambda how: f"monitor {how}",
    "decided": _decided,
    "dropped": _after("dropped what had lost its point"),
    "waiting": _after("waits for another try"),
    "reply": _after("a person answered"),
    "bridge": _after("handed over from the chat"),
    "kill": lambda _: "a person ended the session",
    "rotation": _rotation,
    "context": _after("told the agent"),
    "compaction": lambda detail: detail or "compaction",
    "person": _after("let a person know"),
    "lock": _after("removed a lock that a killed git had left behind"),
    Verb.INJECT: _after("told the agent"),
    Verb.NOTIFY: _after("asked a person"),
    Verb.REMIND: _after("reminded the person"),
    Verb.RECOVER: _recover,
    Verb.PARK: lambda detail: f"parked the session {detail}",
}
"""How events are told; the others speak for themselves, most are verbs of the protocol."""

SHORTLY: dict[str, Callable[[str], str]] = {
    "claimed": lambda _: "claimed",
    "started": lambda _: "started",
    "decided": _row_name,
    "reply": lambda _: "answered",
    "bridge": lambda detail: f"from the chat: {detail.partition(' ')[0]}",
    "rotation": _rotation_shortly,
    "context": _after("told"),
    Verb.INJECT: _after("told"),
    Verb.NOTIFY: _after("asked"),
    Verb.RECOVER: lambda _: "restarted",
    Verb.PARK: lambda detail: f"parked {detail.partition(' (')[0]}",
}

OUTCOMES = {
    "merged": "merged",
    "merged-early": "merged",
    "issue-closed": "stopped, as the issue was closed",
    "pull-closed": "stopped, as the pull request was closed",
    "blocked": "stopped, as the issue was labelled blocked",
    "failed": "failed: the agent gave up",
    "idle-prompt": "failed: the agent never signalled a phase",
    "recovery-exhausted": "failed: the agent died again and again",
    "escalation-over": "failed: nobody answered",
}
"""What it means that a row ended a session."""


def summarise(events: list[Event]) -> Summary:
    """What `events` (at least one, of one session, oldest first) amount to."""
    rows = [_row_name(event.detail) for event in events if event.event == "decided"]
    for event in events:
        if event.event == "dropped" and (name := _row_name(event.detail)) in rows:
            rows.remove(name)
    counts = [MATRIX[name].counts for name in rows if name in MATRIX]
    by_hand = sum(event.event == "recover" and event.detail == BY_HAND for event in events)
    return Summary(
        outcome=_outcome(events),
        took_s=events[-1].at - events[0].at,
        sessions=sum(event.event == "started" for event in events),
        fixes=counts.count(Count.FIX),
        rounds=counts.count(Count.ROUND),
        recoveries=rows.count("recover") + by_hand,
        rotations=sum(_is_finished(event) for event in events),
    )


def _is_finished(event: Event) -> bool:
    return event.event == "rotation" and event.detail.startswith(FINISHED)


def _outcome(events: list[Event]) -> str:
    """Of the last session: a new claim or start after an end begins a new one."""
    outcome, ended_by = AT_WORK, ""
    for event in events:
        if event.event in ("claimed", "started"):
            outcome = AT_WORK
        elif event.event == "decided":
            ended_by = _row_name(event.detail)
        elif event.event == Verb.FORGET:
            outcome = OUTCOMES.get(ended_by, "ended")
        elif event.event == "over":
            outcome = event.detail or "ended"
        elif event.event == "kill" and event.detail != BY_HAND and outcome == AT_WORK:
            outcome = "ended"  # at once; that of an issue is only asked for, and told of as it ends
    return outcome
