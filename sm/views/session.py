"""Rows of the sessions of issues, read from the files alone. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import structs

from sm.adapters.forge.model import CheckState, PullState
from sm.base.clock import format_time
from sm.base.phase import Phase
from sm.base.refusal import Refusal
from sm.base.text import one_line
from sm.issues.act.problem import read_problem
from sm.issues.look.escalation import tell_limit
from sm.issues.look.observe import Observation, recall
from sm.issues.look.snapshot import Snapshot, last_snapshot
from sm.issues.rules.decision_input import Life
from sm.issues.rules.facts import Facts
from sm.sessions import agent, terminal
from sm.sessions.activity import Evidence, Proof
from sm.sessions.failure import FailureCause
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.sessions.signs import SILENT
from sm.store import journal
from sm.store.events import Event
from sm.views.event_words import tell_shortly
from sm.views.family import HOLDERS, PEOPLE, People, add_fields, begin_row
from sm.views.open_need import (
    find_forgotten_draft,
    find_need,
    find_need_of_account,
    find_refused,
    find_unknown_screen,
    make_need,
)
from sm.views.records import show
from sm.views.session_row import CHECKS, CONFLICTS, VERDICTS, SessionRow
from sm.views.states import ShownState

NOTHING_SEEN = Snapshot(0.0)
LAST_WORDS = 200
"""Greatest number of characters of the line that tells why an agent ended."""


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
) -> list[SessionRow]:
    """Make the rows of these sessions, from what was `known` of the forge and who is in which.

    `events` are their last ones, for a caller that knows them.
    """
    found = list(sessions)
    if events is None:
        events = journal.find_latest(project.root.journal, {session.name for session in found})
    there: Mapping[str, Refusal] = people or {}
    return [make_row(now, s, known, events.get(s.name), there.get(s.name)) for s in found]


def make_row(
    now: float,
    session: IssueSession,
    known: Snapshot = NOTHING_SEEN,
    event: Event | None = None,
    there: Refusal | None = None,
) -> SessionRow:
    """Make the row of a session, from what is `known` of the forge, its last event, who is in it.

    One that cannot be read says what is damaged.
    """
    if event is not None and event.at < session.record.created_at <= now:
        event = None  # of an earlier session of that issue; else the clock was set back
    row = begin_row(session)
    if event is not None:
        row = structs.replace(row, event=one_line(tell_shortly(event)), event_at=event.at)
    return show(
        session,
        lambda _: _fill(row, session, recall(session, known), now, there),
        lambda one: structs.replace(row, problem=one.why, proof=one.proof),
    )


def _fill(
    row: SessionRow, session: IssueSession, known: Observation, now: float, there: Refusal | None
) -> SessionRow:
    facts = structs.replace(known.facts, now=now)
    known = structs.replace(known, facts=facts)
    state = next(state for state, holds in STATES if holds(facts))
    since, proof = _proof(state, facts, known, session)
    found, problem = find_need(session, known), read_problem(session.dir)
    waits_for, why = _waits_for(state, facts, row, known), ""
    if state is ShownState.STARTING and not facts.history.started_at:
        # No dev-poll runs on a machine where another one has placed it.
        finisher = "its machine" if session.attempt else "dev-poll"
        waits_for = f"{finisher} to finish its start"
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
    row = structs.replace(
        row,
        state=state,
        ci=CHECKS.get(facts.check, ""),
        review=CONFLICTS if facts.conflicts else verdict,
        fixes=facts.history.fixes,
        rounds=facts.history.rounds,
        restarts=facts.history.recoveries_ever,
        reason=known.write.reason,
        doing=facts.signs.doing if facts.signs else "",
        waits_for=_put_paused(facts, waits_for + _last_words(state, session)),
        why=one_line(why),
        problem=one_line(known.problem or problem_told or _unasked(known)),
        alive=facts.session is Life.ALIVE,
        state_since=since,
        slotless=facts.slotless,
        proof=proof,
        need=need,
        person=PEOPLE.get(there, "") if there else "",
    )
    if pull := known.pull:
        link = session.project.settings.forge.link_pull(pull.number)
        row = structs.replace(row, pull=pull.number, head=pull.head, link=link)
    row = add_fields(row, session, ("monitor", "rotation"))
    return structs.replace(row, rotation=one_line(row.rotation))


def _proof(
    state: ShownState, facts: Facts, known: Observation, one: IssueSession
) -> tuple[float, Proof]:
    """Return since when the state holds, 0 if unknown, and what proves it."""
    signs = facts.signs or SILENT
    match state:
        case ShownState.STARTING if not facts.history.started_at:
            found = Proof(Evidence.RECORD, one.record.created_at, one.dir.identity.name)
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
            return last.at + facts.policy.agent_timeout_s, last
        case ShownState.WORKING:
            seen = Proof(Evidence.HOOK, signs.active_at) if signs.active_at else _process(one)
            return facts.addressed_at, seen
        case _:
            found = Proof(Evidence.PHASE, facts.written_at, facts.phase)
    return found.at, found


def _process(one: IssueSession) -> Proof:
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


def _waits_for(state: ShownState, facts: Facts, row: SessionRow, known: Observation) -> str:
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


def _of_parked(facts: Facts) -> str:
    account = facts.account
    if account and account.works:
        return f"parked until its turn to go on: {account.name} works again"
    if account and facts.parked and account.fault is FailureCause.ACCESS:
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
