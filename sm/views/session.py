"""State of every session, read from the files alone. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from msgspec import Struct, structs

from sm.adapters.forge.model import CheckState, PullState, ReviewState
from sm.base.clock import format_time
from sm.base.phase import Phase
from sm.base.refusal import Refusal
from sm.base.text import one_line
from sm.issues.act.problem import read_problem
from sm.issues.look.escalation import tell_limit
from sm.issues.look.observe import Observation, recall
from sm.issues.look.snapshot import Snapshot, last_snapshot
from sm.issues.rules.facts import Facts, Life
from sm.sessions import agent, terminal
from sm.sessions.activity import Evidence, Proof
from sm.sessions.failure import Fault
from sm.sessions.project import Project
from sm.sessions.session import AnySession, IssueSession
from sm.sessions.signs import SILENT
from sm.store import journal
from sm.store.events import Event
from sm.views.event_words import tell_shortly
from sm.views.figures import NO_FIGURES, OfSession
from sm.views.known import Damaged, Known, show
from sm.views.open_need import (
    OpenNeed,
    find_forgotten_draft,
    find_need,
    find_need_of_account,
    find_refused,
    find_unknown_screen,
    make_need,
)
from sm.views.people import HOLDERS, WORDS, People
from sm.views.states import ShownState

NOTHING_SEEN = Snapshot(0.0)
LAST_WORDS = 200
"""Greatest number of characters of the line that tells why an agent ended."""


class Inside(Struct, frozen=True):
    """Facts that only the machine of a session can read, told by it to another machine.

    `percent` says how full its context is, None if that is not known. `queued` is the number of
    messages that wait for its agent, `words` what the agent said last, '' for nothing. `documents`:
    it has a handoff document. `told`: by a channel of that machine a person hears of what it needs.
    `reminders` is how often that machine has reminded the person who was asked.
    """

    percent: float | None = None
    queued: int = 0
    words: str = ""
    paused: bool = False
    documents: bool = False
    told: bool = False
    reminders: int = 0


class StatusRow(Struct, frozen=True, kw_only=True):
    """Row of one session. Ages are in seconds; `pull` is 0 while there is no pull request.

    `recoveries` counts all restarts, `reason` is what the agent wrote beside its phase, `why` a
    person is asked, `problem` why something cannot be done at the moment, `doing` what the agent's
    hooks say of it, `rotation` what is done with its context; `monitor` and `agent` say whether
    they are alive. `state_since` is when `phase` began, in seconds since 1970, 0 if unknown. `need`
    is what a person is needed for, None for nothing. `person` says what somebody in its terminal is
    doing, '' for nobody; that takes nothing from `need`. `slotless`: it has work for its agent, and
    waits for a free slot. `figures` are what plugins know, such as its cost. `head` is the commit
    that its pull request is at. `host` is the machine that it runs on, '' for this one; `inside` is
    what that machine says of it beside all this, None for this machine.
    """

    project: str
    issue: int
    title: str
    session: str
    phase: ShownState
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
    why: str = ""
    problem: str = ""
    worktree: str
    doing: str = ""
    rotation: str = ""
    monitor: bool = False
    agent: bool = False
    state_since: float = 0.0
    slotless: bool = False
    proof: Proof = Proof(Evidence.ERROR)
    need: OpenNeed | None = None
    person: str = ""
    figures: OfSession = NO_FIGURES
    head: str = ""
    host: str = ""
    inside: Inside | None = None

    @property
    def alone(self) -> bool:
        """Whether it was started and has no monitor."""
        return not self.monitor and self.phase not in (ShownState.STARTING, ShownState.DAMAGED)


STATES: tuple[tuple[ShownState, Callable[[Facts], bool]], ...] = (
    (ShownState.STARTING, lambda f: not f.history.started_at),
    (ShownState.MERGED, lambda f: f.merged),
    (ShownState.DONE, lambda f: f.phase is Phase.DONE and f.open),
    (ShownState.FAILED, lambda f: f.phase is Phase.FAILED),
    (ShownState.CRASHED, lambda f: f.crashed),
    (ShownState.ESCALATED, lambda f: f.escalated or (f.open and f.phase is Phase.ESCALATE)),
    (ShownState.PARKED, lambda f: f.parked or bool(f.brake)),
    (ShownState.STARTING, lambda f: f.signs is not None and f.signs.starting_at is not None),
    (ShownState.AWAITING_CI, lambda f: f.awaits_ci),
    (ShownState.AWAITING_REVIEW, lambda f: f.awaits_review),
    (ShownState.UNKNOWN, lambda f: f.open and f.phase is Phase.UNKNOWN),
    (ShownState.WORKING, lambda _: True),
)
"""States of a session, each with its condition: the first that holds counts."""

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
TO_FINISH = "the agent to finish: it is merged, and PHASE:done is not written"
ANSWERED = "the agent to take the answer"
ASKED = "a person: its turn has ended with a question"
"""Words for what a session waits for whose agent does not simply work, by its hooks."""


def read_last_look(project: Project) -> Snapshot:
    """Read the forge as it was seen last, however long ago."""
    return last_snapshot(project.root.project(project.name)) or NOTHING_SEEN


def make_rows(
    project: Project,
    now: float,
    sessions: Iterable[IssueSession],
    known: Snapshot,
    people: People | None = None,
    events: Mapping[str, Event] | None = None,
) -> list[StatusRow]:
    """Make the rows of these sessions, from what was `known` of the forge and who is in which.

    `events` are their last ones, for a caller that knows them.
    """
    found = list(sessions)
    if events is None:
        events = journal.find_latest(project.root.journal, {session.name for session in found})
    there: Mapping[str, Refusal] = people or {}
    return [_row(now, s, known, events.get(s.name), there.get(s.name)) for s in found]


def make_row(now: float, session: IssueSession) -> StatusRow:
    """Make the row of a session of which nothing else was seen: no forge, no events."""
    return _row(now, session, NOTHING_SEEN, None, None)


def _row(
    now: float, session: IssueSession, known: Snapshot, event: Event | None, there: Refusal | None
) -> StatusRow:
    if event is not None and event.at < session.record.created_at <= now:
        event = None  # of an earlier session of that issue; else the clock was set back
    one = Known(session, now)
    row = StatusRow(
        project=one.project,
        issue=one.issue,
        title=session.record.title,
        session=session.name,
        phase=ShownState.DAMAGED,
        age_s=one.age_s,
        last_event=one_line(tell_shortly(event)) if event else "",
        last_event_age_s=max(0.0, now - event.at) if event else 0.0,
        worktree=str(session.worktree),
    )

    def make(_: AnySession) -> StatusRow:
        return _filled(row, one, session, recall(session, known), there)

    return show(session, make, partial(_damaged, row))


def _damaged(row: StatusRow, one: Damaged) -> StatusRow:
    return structs.replace(row, problem=one.why, proof=one.proof)


def _filled(
    row: StatusRow, one: Known, session: IssueSession, known: Observation, there: Refusal | None
) -> StatusRow:
    facts = structs.replace(known.facts, now=one.now)
    known = structs.replace(known, facts=facts)
    state = next(state for state, holds in STATES if holds(facts))
    since, proof = _proof(state, facts, known, one)
    found, problem = find_need(session, known), read_problem(session.dir)
    waits_for, why = _waits_for(state, facts, row, known), ""
    if state is ShownState.STARTING and not facts.history.started_at:
        waits_for = _of_start(session)
    if found and state is ShownState.ESCALATED:
        _, asked = found
        waits_for, why = f"{asked.waits_for}: {asked.command}", asked.why
    if problem and problem.refusal in HOLDERS:
        held = f"{HOLDERS[problem.refusal]} ({problem.text})"
        waits_for, problem_told = "; ".join(filter(None, (waits_for, held))), ""
    else:
        problem_told = problem.sentence if problem else ""
    if found:
        need = make_need(session, known, *found)
    else:
        begun = facts.history.started_at > 0
        need = find_forgotten_draft(session, problem) or find_refused(session, problem, begun=begun)
        if need is None and facts.session is Life.ALIVE:
            need = find_unknown_screen(session)
    if need is None and session.attempt:
        # A machine that has placed a session here asks this one for rows alone.
        need = find_need_of_account(session)
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
        waits_for=_put_paused(facts, waits_for + _last_words(state, session)),
        why=one_line(why),
        problem=one_line(known.problem or problem_told or _unasked(known)),
        rotation=one_line(one.rotation),
        monitor=one.monitor,
        agent=facts.session is Life.ALIVE,
        state_since=since,
        slotless=facts.slotless,
        proof=proof,
        need=need,
        person=WORDS.get(there, "") if there else "",
        head=known.pull.head if known.pull else "",
    )


def _proof(state: ShownState, facts: Facts, known: Observation, one: Known) -> tuple[float, Proof]:
    """Return since when the state holds, 0 if unknown, and what proves it."""
    signs = facts.signs or SILENT
    match state:
        case ShownState.STARTING if not facts.history.started_at:
            found = Proof(Evidence.RECORD, one.session.record.created_at, one.dir.identity.name)
        case ShownState.STARTING:
            found = Proof(Evidence.RECEIPT, facts.history.started_at, "start")
        case ShownState.MERGED if known.pull:
            found = Proof(Evidence.COMMIT, known.pull.closed_at, known.pull.merged_as)
        case ShownState.ESCALATED if asked := facts.escalation:
            found = Proof(Evidence.RECEIPT, asked.at, asked.row)
        case ShownState.PARKED if failure := facts.failure:
            found = Proof(Evidence.HOOK, failure.at, failure.fault)
        case ShownState.CRASHED if facts.session is Life.GONE:
            return signs.active_at if signs.doing == ShownState.DEAD else 0.0, _process(one)
        case ShownState.CRASHED:
            shown = {signs.active_at: Evidence.HOOK, facts.written_at: Evidence.PHASE}
            last = Proof(shown.get(facts.life_at, Evidence.RECEIPT), facts.life_at)
            return last.at + facts.limits.agent_timeout_s, last
        case ShownState.WORKING:
            seen = Proof(Evidence.HOOK, signs.active_at) if signs.active_at else _process(one)
            return facts.addressed_at, seen
        case _:
            found = Proof(Evidence.PHASE, facts.written_at, facts.phase)
    return found.at, found


def _process(one: Known) -> Proof:
    process = agent.read_process(one.dir)
    return Proof(Evidence.PROCESS, what=str(process.pid) if process else "")


def _last_words(state: ShownState, session: IssueSession) -> str:
    """Return the last line in the terminal of an agent that is gone."""
    if state is not ShownState.CRASHED:
        return ""
    line = one_line(terminal.read_tail(session.terminal_log, 1), LAST_WORDS).strip()
    return f', as its agent ended: "{line}"' if line else ""


def _unasked(known: Observation) -> str:
    """Say where the question to a person is missing, or cannot be answered."""
    asked = known.facts.escalation
    return known.unread or (asked.missed if asked else "")


def _put_paused(facts: Facts, waits_for: str) -> str:
    """Put a pause before what a session waits for; the top of `sm status` says how it goes on."""
    if not facts.paused:
        return waits_for
    return f"paused; then {waits_for}" if waits_for else "paused"


def _waits_for(state: ShownState, facts: Facts, row: StatusRow, known: Observation) -> str:
    pull = f"pull request {known.pull.name}" if known.pull else "its pull request"
    match state:
        case ShownState.STARTING:
            return f"{DOING['starting']}: if it asks something, sm attach {row.project} {row.issue}"
        case ShownState.ESCALATED:
            return ANSWERED if facts.reply else "the question to be put to a person"
        case ShownState.PARKED:
            return _of_parked(facts)
        case ShownState.CRASHED if not facts.recoverable:
            return "nothing: no restart is left"
        case ShownState.CRASHED if facts.false_start:
            again = format_time(facts.pause_until, facts.now)
            return f"its restart, tried again at {again}: agents end as they start"
        case ShownState.CRASHED:
            return "its restart"
        case ShownState.AWAITING_CI:
            return f"CI of {pull}"
        case ShownState.AWAITING_REVIEW:
            held = f": {known.pull.held}" if facts.merge_held and known.pull else ""
            return f"{_of_review(facts)} {pull}{held}"
        case ShownState.WORKING if facts.pull is PullState.OPEN and _to_merge(facts):
            return f"the agent to merge {pull}"
        case _:
            return _of_agent(state, facts)


def _of_start(session: IssueSession) -> str:
    """Say who finishes its start: no dev-poll runs on a machine where another one placed it."""
    return "its machine to finish its start" if session.attempt else "dev-poll to finish its start"


def _of_parked(facts: Facts) -> str:
    account = facts.account
    if account and account.works:
        return f"parked until its turn to go on: {account.name} works again"
    if account and facts.parked and account.fault is Fault.ACCESS:
        return f"parked for the login of {account.name}: {account.fault}"
    if facts.failure and facts.parked:
        until = format_time(facts.told_until, facts.failure.at)
        return f"parked until {until}: {facts.failure.fault}"
    return f"held: {tell_limit(facts)}"


def _of_review(facts: Facts) -> str:
    if facts.approved and facts.green:
        return "the merge of"
    return "CI of" if facts.check is CheckState.PENDING else "a review of"


def _of_agent(state: ShownState, facts: Facts) -> str:
    if state is ShownState.MERGED and facts.session is Life.ALIVE and facts.working:
        return TO_FINISH
    signs = facts.signs
    if signs is None or state in (ShownState.DONE, ShownState.MERGED):
        return ""
    if signs.asks:
        return ASKED
    if signs.sleeps:
        return "its own timer"
    early = signs.doing == "idle" and signs.ended_at is None  # before its first prompt
    return DOING.get("starting" if early else signs.doing, "")


def _to_merge(facts: Facts) -> bool:
    answer = facts.history.answer
    return answer is not None and answer.row in ("approved", "merge-reminder")
