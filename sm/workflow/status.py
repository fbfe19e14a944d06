"""What every session is at, read from what is on disk: nobody is asked, nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from msgspec import Struct, structs

from sm.errors import SmError
from sm.facts import Facts, Signs
from sm.forge import CheckState, PullState, ReviewState
from sm.phase import Phase
from sm.session import agent
from sm.session.registry import IssueSession
from sm.store import journal
from sm.store.files import read_guarded
from sm.store.journal import Event
from sm.text import one_line
from sm.workflow import monitors, replacement, signs
from sm.workflow.context import Context
from sm.workflow.observe import Observation, last_known
from sm.workflow.snapshot import Snapshot, last_snapshot
from sm.workflow.trace import tell_shortly

NOTHING_SEEN = Snapshot(0.0, "")


class State(StrEnum):
    """What a session is at, in a word or two for people."""

    STARTING = "starting"
    WORKING = "working"
    AWAITING_CI = "awaiting CI"
    AWAITING_REVIEW = "awaiting review"
    ESCALATED = "escalated"
    UNKNOWN = "unknown phase"
    DONE = "done"
    MERGED = "merged"
    FAILED = "failed"
    CRASHED = "crashed"
    PARKED = "parked"
    DAMAGED = "damaged"


class StatusRow(Struct, frozen=True, kw_only=True):
    """One session. Ages are in seconds; `pull` is 0 while there is no pull request.

    `recoveries` counts all restarts, `reason` is what the agent wrote beside its phase, `problem`
    why something cannot be done at the moment, `doing` what the agent's hooks say of it, `rotation`
    what is done with its context; `monitor` and `agent` say whether they are alive.
    """

    project: str
    issue: int
    title: str
    session: str
    phase: State
    ci: str = ""
    review: str = ""
    pull: int = 0
    fixes: int = 0
    rounds: int = 0
    recoveries: int = 0
    age_s: float
    last_event: str = ""
    last_event_age_s: float = 0.0
    reason: str = ""
    waits_for: str = ""
    problem: str = ""
    worktree: str
    doing: str = ""
    rotation: str = ""
    monitor: bool = False
    agent: bool = False

    @property
    def alone(self) -> bool:
        """Whether nobody watches it, although it was started."""
        return not self.monitor and self.phase not in (State.STARTING, State.DAMAGED)


STATES: tuple[tuple[State, Callable[[Facts], bool]], ...] = (
    (State.STARTING, lambda f: not f.history.started_at),
    (State.DONE, lambda f: f.phase is Phase.DONE and (f.open or f.merged)),
    (State.MERGED, lambda f: f.merged),
    (State.FAILED, lambda f: f.phase is Phase.FAILED),
    (State.CRASHED, lambda f: f.crashed),
    (State.ESCALATED, lambda f: f.escalated or (f.open and f.phase is Phase.ESCALATE)),
    (State.PARKED, lambda f: f.parked),
    (State.AWAITING_CI, lambda f: f.awaits_ci),
    (State.AWAITING_REVIEW, lambda f: f.awaits_review),
    (State.UNKNOWN, lambda f: f.open and f.phase is Phase.UNKNOWN),
    (State.WORKING, lambda _: True),
)
"""The first that holds is the session's state."""

CHECKS = {
    CheckState.SUCCESS: "passed",
    CheckState.FAILURE: "failed",
    CheckState.PENDING: "pending",
    CheckState.BROKEN: "broken",
}
VERDICTS = {ReviewState.APPROVED: "approved", ReviewState.CHANGES_REQUESTED: "changes"}
DOING = {
    "starting": "the agent's prompt",
    "idle": "a new phase: its turn has ended",
    "waiting": "the agent's background tasks",
    "dialog": "an answer in its terminal",
}
"""What a session waits for whose agent is not simply at work, by what its hooks say."""


def rows(ctx: Context, now: float) -> list[StatusRow]:
    """Every session of the project, by issue; a damaged one has its row, too.

    Raises:
        StateError: the last observation of the forge is damaged.

    """
    return rows_of(ctx, now, ctx.sessions(), seen(ctx))


def seen(ctx: Context) -> Snapshot:
    """The forge as it was seen last, however long ago."""
    return last_snapshot(ctx.root.project(ctx.project.name)) or NOTHING_SEEN


def rows_of(
    ctx: Context, now: float, sessions: Iterable[IssueSession], known: Snapshot
) -> list[StatusRow]:
    """The rows of these sessions, by what was `known` of the forge."""
    found = list(sessions)
    events = journal.latest(ctx.root.journal, {session.name for session in found})
    parts = _parts(known)
    return [_row(ctx, now, s, parts(s), events.get(s.name)) for s in found]


def _parts(known: Snapshot) -> Callable[[IssueSession], Snapshot]:
    """For each session the part of the snapshot that concerns it: a thousand search no thousand."""
    issues = {issue.number: issue for issue in known.issues}
    pulls = {pull.branch: pull for pull in sorted(known.pulls, key=lambda pull: pull.number)}

    def part(session: IssueSession) -> Snapshot:
        return structs.replace(
            known,
            issues=(issues[session.issue],) if session.issue in issues else (),
            pulls=(pulls[session.branch],) if session.branch in pulls else (),
        )

    return part


def _row(
    ctx: Context, now: float, session: IssueSession, known: Snapshot, event: Event | None
) -> StatusRow:
    if event is not None and event.at < session.created_at:
        event = None  # of an earlier session of that issue
    row = StatusRow(
        project=session.project,
        issue=session.issue,
        title=session.title,
        session=session.name,
        phase=State.DAMAGED,
        age_s=max(0.0, now - session.created_at),
        last_event=one_line(tell_shortly(event)) if event else "",
        last_event_age_s=max(0.0, now - event.at) if event else 0.0,
        worktree=str(session.worktree),
    )
    try:
        return _filled(ctx, row, session, last_known(ctx, session, known), now)
    except SmError as error:
        return structs.replace(row, problem=error.message)


def _filled(
    ctx: Context, row: StatusRow, session: IssueSession, known: Observation, now: float
) -> StatusRow:
    facts = structs.replace(known.facts, now=now)
    state = next(state for state, holds in STATES if holds(facts))
    verdict = VERDICTS.get(facts.review, "") if facts.review else ""
    return structs.replace(
        row,
        phase=state,
        ci=CHECKS.get(facts.check, ""),
        review="conflicts" if facts.conflicts else verdict,
        pull=known.pull.number if known.pull else 0,
        fixes=facts.history.fixes,
        rounds=facts.history.rounds,
        recoveries=facts.history.recoveries_ever,
        reason=known.write.reason,
        doing=facts.signs.doing if facts.signs else "",
        waits_for=_waits_for(state, facts, row, known),
        problem=one_line(known.problem or _problem(session) or _unasked(known)),
        rotation=one_line(replacement.in_words(session.dir)),
        monitor=monitors.is_watched(session),
        agent=agent.is_alive(session.dir),
    )


def _problem(session: IssueSession) -> str:
    return (read_guarded(session.dir.problem) or b"").decode("utf-8", "replace")


def _unasked(known: Observation) -> str:
    """Where the question to a person is not, or cannot be answered."""
    asked = known.facts.escalation
    return known.unread or (asked.missed if asked else "")


def _waits_for(state: State, facts: Facts, row: StatusRow, known: Observation) -> str:
    pull = f"pull request #{known.pull.number}" if known.pull else "its pull request"
    match state:
        case State.STARTING:
            return "dev-poll to finish its start"
        case State.ESCALATED:
            return _answer(facts, row)
        case State.PARKED if facts.failure:
            return f"parked until {signs.until(facts.failure)}: {facts.failure.fault}"
        case State.CRASHED if not facts.recoverable:
            return "nothing: no restart is left"
        case State.CRASHED:
            return "its restart"
        case State.AWAITING_CI:
            return f"CI of {pull}"
        case State.AWAITING_REVIEW:
            return f"{_of_review(facts)} {pull}"
        case State.WORKING if facts.pull is PullState.OPEN and _to_merge(facts):
            return f"the agent to merge {pull}"
        case _:
            return _of_agent(state, facts.signs)


def _of_review(facts: Facts) -> str:
    if facts.approved and facts.green:
        return "the merge of"
    return "CI of" if facts.check is CheckState.PENDING else "a review of"


def _of_agent(state: State, signs: Signs | None) -> str:
    if signs is None or state in (State.DONE, State.MERGED):
        return ""
    early = signs.doing == "idle" and signs.ended_at is None  # before its first prompt
    return DOING.get("starting" if early else signs.doing, "")


def _answer(facts: Facts, row: StatusRow) -> str:
    if facts.dialog_at is not None:
        return f"a dialog in its terminal: sm attach {row.project} {row.issue}"
    if facts.outage and facts.about == facts.outage:
        return f"CI, which is broken: sm ci rerun {row.project} {row.issue}"
    return f"an answer: sm reply {row.project} {row.issue} TEXT"


def _to_merge(facts: Facts) -> bool:
    answer = facts.history.answer
    return answer is not None and answer.row in ("approved", "merge-reminder")
