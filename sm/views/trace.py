"""Story of a session, told from the journal: what happened, when, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from msgspec import Struct, structs

from sm.base.errors import SmError
from sm.base.issue_id import IssueId, spell
from sm.issues.rules.matrix import BY_NAME
from sm.sessions import activity, registry, terminal
from sm.sessions.history import Count, StepVerb
from sm.sessions.project import Project
from sm.sessions.session import AnySession, IssueSession
from sm.store import events, journal
from sm.store.events import Event, Rotation, RotationStep
from sm.store.paths import Root, name_session
from sm.views.event_words import describe, name_event, tell
from sm.views.records import read_or
from sm.views.session import make_rows, read_last_look
from sm.views.states import ShownState
from sm.views.times import format_span

AT_WORK = "still at work"


class StoryEvent(Struct, frozen=True):
    """Event, and its words for a person; `elapsed_s` since the event before, 0 at the first."""

    at: float
    elapsed_s: float
    event: str
    detail: str
    told: str


class Summary(Struct, frozen=True):
    """Story in short. `sessions` is how often it was begun. `took_s` is in seconds.

    `took_s` goes up to the end, or up to now while the session is not over. `rotations` is how
    often its context was replaced.
    """

    outcome: str
    took_s: float
    sessions: int
    fixes: int
    rounds: int
    recoveries: int
    rotations: int = 0


class Story(Struct, frozen=True):
    """Everything that the journal has on one session, oldest first.

    `log` is what the terminal of the last ended one showed, '' if that is not kept. `figures` are
    what plugins say of it, such as its cost, a sentence each.
    """

    session: str
    entries: tuple[StoryEvent, ...]
    summary: Summary
    log: str = ""
    figures: tuple[str, ...] = ()


def read_story(project: Project, issue: IssueId) -> Story:
    """Read what happened for `issue`; also if its session is long over.

    Raises:
        SmError: the journal has nothing on it.

    """
    session = name_session(project.name, issue)
    return read_story_of(project.root, session, f"issue {spell(issue)} of '{project.name}'")


def read_story_of(root: Root, session: str, what: str) -> Story:
    """Read what happened in the session with that id; `what` is how a person calls it.

    Raises:
        SmError: the journal has nothing on it.

    """
    found = list(journal.read(root.journal, session))
    if not found:
        raise SmError(
            f"nothing is known of {what}: "
            f"no session has worked on it, as far as '{root.journal}' tells"
        )
    log = "".join(map(str, terminal.list_kept_logs(root, session)[-1:]))
    return Story(session, tuple(_entries(found)), summarise(found), log)


def _entries(found: list[Event]) -> Iterable[StoryEvent]:
    for before, event in pairwise([found[0], *found]):
        yield StoryEvent(
            event.at, event.at - before.at, name_event(event), describe(event), tell(event)
        )


MERGED = "merged"
OUTCOMES = {
    "merged": MERGED,
    "merged-early": MERGED,
    "issue-closed": "stopped, as the issue was closed",
    "pull-closed": "stopped, as the pull request was closed",
    "overtaken": "taken over by another attempt",
    "given-back": "stopped, as all sessions were ended",
    "blocked": "stopped, as the issue was labelled blocked",
    "failed": "failed: the agent gave up",
    "idle-prompt": "failed: the agent never signalled a phase",
    "recovery-exhausted": "failed: the agent died again and again",
    "escalation-over": "failed: no answer came",
}
"""Outcomes of an issue, by the row that ended its session."""


def summarise(found: list[Event]) -> Summary:
    """Sum these events up (at least one, of one session, oldest first)."""
    rows = [event.row for event in found if isinstance(event, events.Decided)]
    for event in found:
        if isinstance(event, events.Dropped) and event.row in rows:
            rows.remove(event.row)
    counts = [BY_NAME[row].counts for row in rows if row in BY_NAME]
    # Events that plugins add after the end do not make it longer.
    own = [event for event in found if not isinstance(event, events.FromPlugin)] or found
    by_hand = sum(isinstance(event, events.RecoverAsked) for event in found)
    return Summary(
        outcome=_outcome(found),
        took_s=own[-1].at - found[0].at,
        sessions=sum(isinstance(event, events.Started) for event in found),
        fixes=counts.count(Count.FIX),
        rounds=counts.count(Count.ROUND),
        recoveries=rows.count("recover") + by_hand,
        rotations=sum(
            isinstance(event, Rotation) and event.step is RotationStep.FINISHED for event in found
        ),
    )


def _outcome(found: list[Event]) -> str:
    """Return the outcome of the last session: a claim or start after an end begins a new one."""
    outcome, ended_by = AT_WORK, ""
    for event in found:
        match event:
            case events.Claimed() | events.Started():
                outcome = AT_WORK
            case events.Decided(row=row):
                ended_by = row
            case events.StepDone(verb=StepVerb.FORGET):
                outcome = OUTCOMES.get(ended_by, "ended")
            case events.Over(how=how):
                outcome = how or "ended"
            case events.Kill(done=True) if outcome == AT_WORK:
                outcome = "ended"
    return outcome


def sum_up(summary: Summary) -> str:
    """Sum up in a sentence: outcome, duration, attempts."""
    from sm.base.text import format_count

    counted = (
        (summary.sessions if summary.sessions != 1 else 0, "session"),
        (summary.fixes, "CI fix"),
        (summary.rounds, "review round"),
        (summary.recoveries, "restart"),
        (summary.rotations, "rotation"),
    )
    tries = [format_count(count, what) for count, what in counted if count]
    return ", ".join([f"{summary.outcome}, {format_span(summary.took_s)}", *tries])


# So far: a session that is not over

FORGOTTEN = "not on record any more"
AD_HOC = {
    "ended": "ended",
    "busy": AT_WORK,
    "running": AT_WORK,
    "dead": "its agent has died",
    "dialog": "asks something in its terminal",
    "cut short": "its start was cut short",
}
"""Words for states of a session that works on no issue; the others speak for themselves."""


def bring_up_to_now(told: Story, root: Root, now: float) -> Story:
    """Return the story with how it stands `now` instead of how its last event left it.

    A story that has an end stays as it is.
    """
    summary = told.summary
    if summary.outcome != AT_WORK:
        return told
    session = read_or(lambda _: None, lambda: registry.find(root, told.session), None)
    if session is None:  # or its record cannot be read
        summary = structs.replace(summary, outcome=FORGOTTEN)
    else:
        took_s = max(0.0, now - told.entries[0].at)
        summary = structs.replace(summary, outcome=_stand(session, now), took_s=took_s)
    return structs.replace(told, summary=summary)


def _stand(session: AnySession, now: float) -> str:
    """Say how a session stands, for the last line of its story."""
    if not isinstance(session, IssueSession):
        state = activity.describe_activity(session)
        return AD_HOC.get(state, state)
    try:
        project = session.project
        [row] = make_rows(project, now, [session], read_last_look(project))
    except SmError as error:
        return f"its state is not known ({error.message})"
    state = AT_WORK if row.state is ShownState.WORKING else str(row.state)
    if row.why:
        state = f"a person is needed: {row.why}"
    return f"{state} (waits for {row.waits_for})" if row.waits_for else state
