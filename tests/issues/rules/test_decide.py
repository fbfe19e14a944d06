"""The matrix row by row, its order, its timers, and docs/PROTOCOL.md as its picture."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from sm.adapters.forge.model import CheckState, Hold, PullState, ReviewState
from sm.base.phase import Phase
from sm.base.refusal import Refusal
from sm.config.duration import Seconds
from sm.issues.rules.allowance import BLIND_S, Allowance, LimitStage
from sm.issues.rules.decide import Decision, decide
from sm.issues.rules.decision_input import Life, Policy
from sm.issues.rules.facts import Facts
from sm.issues.rules.matrix import BY_NAME, ROWS
from sm.issues.rules.rows import Row
from sm.sessions.account_fault import AccountCourse, Consequence
from sm.sessions.failure import PATIENCE, REFUSALS, Failure, FailureCause
from sm.sessions.false_start import FalseStart
from sm.sessions.history import (
    KILLED,
    Escalation,
    Halt,
    History,
    LastAnswer,
    Receipt,
    StepVerb,
    fold,
)
from sm.sessions.presence_rule import GONE_S, SOON_S, TYPED_S, Disturbance, Hands
from sm.sessions.signs import Signs
from tests.helpers import REPOSITORY
from tests.matrix import matrix_table
from tests.policy import POLICY

MINUTE, HOUR = 60.0, 3600.0
NOW = 1_000_000.0

LIVING = Facts(now=NOW, policy=POLICY, history=History(started_at=NOW - MINUTE))
"""An agent that was started a minute ago and has not written anything."""


def wrote(phase: Phase, ago_s: float = MINUTE, history: History | None = None) -> Facts:
    """The agent wrote `phase`; its branch is pushed and its pull request open, CI at work."""
    return replace(
        LIVING,
        phase=phase,
        write="w1",
        written_at=NOW - ago_s,
        history=history or History(started_at=NOW - ago_s - MINUTE),
        pushed=True,
        pull=PullState.OPEN,
        head="c1",
        check=CheckState.PENDING,
    )


def answered(row: str, ago_s: float, **more: object) -> History:
    """The write was answered by `row`."""
    answer = LastAnswer("w1", row, NOW - ago_s, provisional=False)
    history = History(answer=answer, answered=frozenset({"w1"}), done=frozenset({f"{row}:w1"}))
    return replace(history, **more)


def asked(row: str, ago_s: float, *, told_ago_s: float | None = None, write: str = "w1") -> History:
    """A person was asked about the write by `row`."""
    told_at = NOW - (ago_s if told_ago_s is None else told_ago_s)
    question = Escalation(write, row, NOW - ago_s, told_at)
    return History(
        escalations={write: question}, done=frozenset({f"{row}:{write}"}), started_at=NOW - MINUTE
    )


def crashed(recoveries: int, ago_s: float) -> Facts:
    """The agent is gone, after so many restarts, the last one `ago_s` ago."""
    history = History(started_at=NOW - ago_s, recoveries=recoveries, recoveries_ever=recoveries)
    return replace(LIVING, session=Life.GONE, history=history)


FAILED_AT = NOW - MINUTE
DIALOG, FAILURE = f"dialog:{NOW - HOUR:.3f}", f"failure:{FAILED_AT:.3f}"
GIVEN_UP = History(started_at=NOW - HOUR, done=frozenset({"context-refused:once"}))
PARKED = History(started_at=NOW - HOUR, done=frozenset({f"park:{FAILED_AT:.3f}"}))


def hooked(facts: Facts = LIVING, **signs: object) -> Facts:
    """An agent whose hooks say this; whatever is no sign is a fact."""
    more = {key: signs.pop(key) for key in list(signs) if key in Facts.__struct_fields__}
    told = replace(Signs(active_at=NOW - MINUTE), **signs)
    return replace(facts, signs=told, **more)


def failed(
    fault: FailureCause,
    facts: Facts = LIVING,
    *,
    until: float = NOW + 10 * MINUTE,
    since: float = FAILED_AT,
    count: int = 1,
    **more: object,
) -> Facts:
    """Its last turn has failed a minute ago."""
    return hooked(facts, failure=Failure(FAILED_AT, fault, until, since, count), **more)


def with_account(
    way: AccountCourse, facts: Facts, *, until: float = NOW + HOUR, **more: object
) -> Facts:
    """The same with a fault of its account, by which it rests or goes on, and with more facts."""
    fault = facts.failure.fault if facts.failure else FailureCause.ACCESS
    return replace(facts, account=Consequence(way, until, "Claude Code (~/.claude)", fault), **more)


def told_of(matter: str) -> History:
    """A person was asked an hour ago about the agent's terminal."""
    dialog = matter.startswith("dialog")
    key = f"dialog:{matter}" if dialog else f"turn-failed:{matter}:0"
    question = Escalation(matter, key.partition(":")[0], NOW - HOUR, NOW - HOUR)
    history = History(started_at=NOW - HOUR, done=frozenset({key}))
    return replace(history, escalations={matter: question})


def reminded(times: int) -> History:
    """The agent was reminded so often."""
    return History(started_at=NOW - HOUR, reminders=times, nudged_at=NOW - MINUTE)


UNHEEDED = answered("ci-failed", MINUTE, reminders=2)
"""After an answer that it has got, too."""
ONCE_TOLD = UNHEEDED.done | {f"silent:{NOW:.3f}"}


def merged(facts: Facts) -> Facts:
    """The same once its pull request is merged, and the forge shows that of its issue."""
    done = facts.history.done | {f"merge-seen:{facts.head}"}
    return replace(facts, pull=PullState.MERGED, history=replace(facts.history, done=done))


CI = wrote(Phase.AWAITING_CI)
REVIEW = replace(wrote(Phase.AWAITING_REVIEW), check=CheckState.SUCCESS)
UNAPPROVED = replace(CI, check=CheckState.PENDING, check_unapproved=True)
ANNOUNCED = replace(REVIEW, history=replace(REVIEW.history, done=frozenset({"review-waits:c1"})))
"""People were told that it waits for a review."""
CHANGES = replace(REVIEW, review=ReviewState.CHANGES_REQUESTED, review_id="r1")
APPROVED = replace(REVIEW, review=ReviewState.APPROVED, review_id="r2")
SM_MERGES = replace(LIVING.policy, merge_by_sm=True)

ELSEWHERE = replace(POLICY, repeats_ci=True)
BROKEN_AGAIN = replace(CI, check=CheckState.BROKEN, check_at=NOW - MINUTE, policy=ELSEWHERE)
RERUN = History(
    started_at=NOW - HOUR,
    done=frozenset({"ci-rerun:c1"}),
    reruns={f"c1@{NOW - MINUTE:.3f}": NOW - 30},
)
"""sm has had CI run again after the run of a minute ago."""
DROPPED = History(
    started_at=NOW - HOUR,
    done=frozenset({"approved-merge:w1:c1"}),
    queued={"approved-merge:w1:c1": NOW - 2 * MINUTE},
)

WAITED_FOR = hooked(ended_at=NOW - 30, idle_since=NOW - 30, history=reminded(2))
"""An agent that has been reminded twice, and is at rest without a phase."""
SILENT = replace(LIVING, history=History(started_at=NOW - 2 * HOUR))


def limited(
    stage: LimitStage, doing: str = "busy", *, halt: Halt | None = None, **more: Any
) -> Facts:
    """An agent whose budget is so far used up; `halt` is what was done about it."""
    signs = Signs(doing=doing, since=NOW - MINUTE, active_at=NOW)
    done = History(started_at=NOW - HOUR, halt=halt)
    limit = Allowance(stage, "issue:10", "$10.00 of $10.00 for this issue")
    return replace(LIVING, **{"signs": signs, "history": done, "allowance": limit} | more)


HALT = Halt("limit:issue:10", NOW - MINUTE, stops=1)
"""A turn of it was interrupted a minute ago."""

BEHAVIOURS: dict[str, tuple[Facts, str]] = {
    "a merge is told at once": (replace(LIVING, pull=PullState.MERGED), "merge-seen"),
    "a merge ends it": (merged(wrote(Phase.DONE)), "merged"),
    "a merge ends it although the agent never says done": (
        merged(wrote(Phase.AWAITING_REVIEW, 2 * HOUR, answered("approved", HOUR))),
        "merged-early",
    ),
    "a merge ends it at once when the agent waits": (merged(REVIEW), "merged-early"),
    "a merge ends it at once when the agent is dead": (
        merged(replace(LIVING, session=Life.GONE)),
        "merged-early",
    ),
    "closing the issue ends it": (replace(CI, issue_open=False), "issue-closed"),
    "closing the pull request ends it": (replace(CI, pull=PullState.CLOSED), "pull-closed"),
    "the end of all sessions gives it back": (
        replace(LIVING, blocked=True, given_back=True),
        "given-back",
    ),
    "another attempt ends it, whatever else has come of it": (
        replace(LIVING, blocked=True, issue_open=False, overtaken=True),
        "overtaken",
    ),
    "the blocked label ends it": (replace(LIVING, blocked=True), "blocked"),
    "an agent that gives up is taken at its word": (wrote(Phase.FAILED), "failed"),
    "an agent idle without a phase is ended": (replace(LIVING, idle_since=NOW - 30), "idle-prompt"),
    "an edit of the issue is told": (replace(LIVING, edit="0123-5.000"), "edited"),
    "an edit of the issue is told before CI's result": (
        replace(CI, edit="0123-5.000", check=CheckState.SUCCESS),
        "edited",
    ),
    "an edit of the issue is told once": (
        replace(
            CI,
            edit="0123-5.000",
            check=CheckState.PENDING,
            history=History(done=frozenset({"edited:0123-5.000"})),
        ),
        "ci-pending",
    ),
    "an edit of a review is told": (replace(REVIEW, review_edit="5-5.000"), "review-edited"),
    "a comment on the pull request is told": (replace(REVIEW, said="3-5.000"), "pull-comment"),
    "a dead agent is restarted": (crashed(0, MINUTE), "recover"),
    "a silent agent is restarted": (
        replace(LIVING, history=History(started_at=NOW - 2 * HOUR)),
        "recover",
    ),
    "an agent dead while it waits is restarted": (replace(CI, session=Life.GONE), "recover"),
    "a restart follows its pause": (crashed(2, MINUTE), "recover"),
    "a restart waits for its pause": (crashed(2, MINUTE - 1), "recovery-pause"),
    "an agent that dies again and again is given up": (crashed(3, HOUR), "recovery-exhausted"),
    "an answer is handed over": (
        replace(wrote(Phase.ESCALATE, history=asked("escalate", HOUR)), reply="a1"),
        "reply",
    ),
    "a refused action is told to a person": (
        replace(LIVING, history=replace(LIVING.history, troubles=("approved-merge:w1:c1",))),
        "trouble",
    ),
    "what a person may like to know is said on the issue": (
        replace(LIVING, history=replace(LIVING.history, remarks=("compact:1",))),
        "remark",
    ),
    "of several remarks each is made": (
        replace(
            LIVING,
            history=replace(LIVING.history, remarks=("a", "b"), done=frozenset({"remark:a"})),
        ),
        "remark",
    ),
    "an agent that needs a person gets one asked": (wrote(Phase.ESCALATE), "escalate"),
    "an agent that needs a person gets a session asked before": (
        replace(wrote(Phase.ESCALATE), first_there=True),
        "first-escalate",
    ),
    "a question nobody answers ends it": (
        wrote(Phase.ESCALATE, 24 * HOUR, asked("escalate", 24 * HOUR)),
        "escalation-over",
    ),
    "a person is reminded": (
        wrote(Phase.ESCALATE, 7 * HOUR, asked("escalate", 6 * HOUR)),
        "remind",
    ),
    "a lost phase file is made anew": (replace(LIVING, phase_lost=True), "phase-lost"),
    "a phase file that a person was asked to remove is made anew": (
        replace(LIVING, phase_lost=True, history=asked("trouble", HOUR, write="")),
        "phase-lost",
    ),
    "an unknown sentinel is explained": (wrote(Phase.UNKNOWN), "unknown-sentinel"),
    "done is not believed without a merge": (wrote(Phase.DONE), "not-merged"),
    "waiting for CI without a push is pointed out": (replace(CI, pushed=False), "nothing-pushed"),
    "waiting for review with work not pushed is pointed out": (
        replace(REVIEW, unpushed=True),
        "nothing-pushed",
    ),
    "what an earlier attempt has pushed meanwhile comes before all else": (
        replace(REVIEW, outrun=True, unpushed=True),
        "outrun",
    ),
    "a pushed branch gets its pull request": (
        replace(CI, pull=None, check=CheckState.NONE),
        "open-pull",
    ),
    "success of CI is passed on": (replace(CI, check=CheckState.SUCCESS), "ci-passed"),
    "no CI is as good as success": (replace(CI, check=CheckState.NONE), "ci-none"),
    "a failure of CI is passed on": (replace(CI, check=CheckState.FAILURE), "ci-failed"),
    "the last failure goes to a person": (
        replace(CI, check=CheckState.FAILURE, history=History(fixes=3, started_at=NOW)),
        "ci-exhausted",
    ),
    "the last failure under review goes to a person": (
        replace(REVIEW, check=CheckState.FAILURE, history=History(fixes=3, started_at=NOW)),
        "ci-exhausted",
    ),
    "CI that is broken itself is told to a person": (
        replace(CI, check=CheckState.BROKEN, check_at=NOW),
        "ci-broken",
    ),
    "CI that is broken itself under review is told to a person": (
        replace(REVIEW, check=CheckState.BROKEN, check_at=NOW),
        "ci-broken",
    ),
    "CI that is broken elsewhere is run again": (
        replace(CI, check=CheckState.BROKEN, check_at=NOW, policy=ELSEWHERE),
        "ci-rerun",
    ),
    "CI that runs again elsewhere is waited for": (
        replace(BROKEN_AGAIN, history=RERUN),
        "ci-rerunning",
    ),
    "CI that is broken elsewhere the second time is told to a person": (
        replace(BROKEN_AGAIN, history=RERUN, check_at=NOW - 1),
        "ci-broken",
    ),
    "CI that cannot be run again from here is told to a person": (
        replace(BROKEN_AGAIN, history=replace(RERUN, reruns={})),
        "ci-broken",
    ),
    "CI that says nothing of what is under review is told to a person": (
        wrote(Phase.AWAITING_REVIEW, 30 * MINUTE),
        "ci-late",
    ),
    "what the forge blocks is waited for": (
        replace(APPROVED, hold=Hold.BLOCKED),
        "review-pending",
    ),
    "what the forge blocks for long is told to a person": (
        replace(APPROVED, hold=Hold.BLOCKED, written_at=NOW - 30 * MINUTE),
        "merge-held",
    ),
    "a merge queue is waited for": (replace(APPROVED, hold=Hold.QUEUED), "merge-queued"),
    "a merge queue that runs CI on the head anew is waited for": (
        replace(APPROVED, hold=Hold.QUEUED, check=CheckState.PENDING),
        "merge-queued",
    ),
    "a failure of CI in a merge queue is told": (
        replace(APPROVED, hold=Hold.QUEUED, check=CheckState.FAILURE),
        "review-red",
    ),
    "a merge queue is waited for by an agent that is done": (
        replace(wrote(Phase.DONE), hold=Hold.QUEUED),
        "merge-queued",
    ),
    "a branch that is behind is brought up to date by the agent": (
        replace(APPROVED, hold=Hold.BEHIND),
        "behind",
    ),
    "what the merge queue drops is told to the agent": (
        replace(APPROVED, policy=replace(POLICY, merge_by_sm=True), history=DROPPED),
        "queue-dropped",
    ),
    "CI that runs again has its whole time once more": (
        replace(wrote(Phase.AWAITING_CI, 3 * HOUR), check_at=NOW - MINUTE),
        "ci-pending",
    ),
    "CI that says nothing is told to a person": (
        wrote(Phase.AWAITING_CI, 30 * MINUTE),
        "ci-timeout",
    ),
    "CI that was stopped is told to a person at once, also where it had begun before": (
        replace(CI, check=CheckState.PENDING, check_overdue=True, check_at=NOW - 1),
        "ci-timeout",
    ),
    "the same of CI under review": (
        replace(REVIEW, check=CheckState.PENDING, check_overdue=True, check_at=NOW - 1),
        "ci-late",
    ),
    "CI at work is waited for": (CI, "ci-pending"),
    "people are told at once of CI that waits for an approval": (UNAPPROVED, "ci-unapproved"),
    "the same under review": (
        replace(REVIEW, check=CheckState.PENDING, check_unapproved=True),
        "ci-unapproved",
    ),
    "it is told once for each commit": (
        replace(UNAPPROVED, history=History(done=frozenset({"ci-unapproved:c1"}))),
        "ci-pending",
    ),
    "CI that waits for an approval for long is told to a person": (
        replace(
            UNAPPROVED,
            written_at=NOW - 30 * MINUTE,
            history=History(done=frozenset({"ci-unapproved:c1"})),
        ),
        "ci-timeout",
    ),
    "changes requested are passed on": (CHANGES, "review-changes"),
    "changes requested after an approval are passed on": (
        replace(CHANGES, history=answered("approved", MINUTE)),
        "review-changes",
    ),
    "changes requested while CI is at work are passed on": (
        replace(CI, review=ReviewState.CHANGES_REQUESTED, review_id="r1"),
        "review-changes",
    ),
    "changes requested of an agent that is at work are passed on": (
        replace(CHANGES, phase=Phase.NONE, write=""),
        "review-changes",
    ),
    "a question in plain words is told to a person": (
        hooked(ended_at=NOW - MINUTE, idle_since=NOW - MINUTE, asks="A or B?"),
        "question",
    ),
    "a question in plain words is put to a session before a person": (
        hooked(ended_at=NOW - MINUTE, asks="A or B?", first_there=True),
        "first-question",
    ),
    "an agent that does nothing is left to the person who is attached": (
        replace(WAITED_FOR, hands=Hands(attached=True)),
        "watched",
    ),
    "an agent that gives no sign is left to the person who is attached": (
        replace(SILENT, hands=Hands(attached=True)),
        "watched",
    ),
    "the last round goes to a person": (
        replace(CHANGES, history=History(rounds=5, started_at=NOW)),
        "review-exhausted",
    ),
    "a conflict is passed on": (replace(REVIEW, conflicts=True), "conflict"),
    "a failure of CI under review is passed on": (
        replace(REVIEW, check=CheckState.FAILURE),
        "review-red",
    ),
    "an approval is passed on": (APPROVED, "approved"),
    "without required reviews green is enough": (
        replace(REVIEW, policy=replace(LIVING.policy, review_required=False)),
        "approved",
    ),
    "sm merges what is approved where it is told to": (
        replace(APPROVED, policy=SM_MERGES),
        "approved-merge",
    ),
    "a missing review is told to a person": (
        replace(ANNOUNCED, written_at=NOW - 3 * HOUR),
        "review-timeout",
    ),
    "people are told of a review that waits": (REVIEW, "review-waits"),
    "of a new head, too": (replace(ANNOUNCED, head="c2"), "review-waits"),
    "a remark is no verdict": (
        replace(REVIEW, review=ReviewState.COMMENTED, review_id="r1"),
        "review-waits",
    ),
    "a review is waited for": (ANNOUNCED, "review-pending"),
    "nobody is asked to review while CI is at work": (
        replace(REVIEW, check=CheckState.PENDING),
        "review-pending",
    ),
    "an approval waits for CI": (replace(APPROVED, check=CheckState.PENDING), "review-pending"),
    "a dialog that nobody answers is told to a person": (
        hooked(dialog_at=NOW - MINUTE),
        "dialog",
    ),
    "a dialog that has just opened may be over in a moment": (
        hooked(dialog_at=NOW - 4),
        "dialog-open",
    ),
    "a dialog that a person was told of is not told of again": (
        hooked(dialog_at=NOW - HOUR, history=told_of(DIALOG)),
        "dialog-open",
    ),
    "what there is to tell waits for the dialog": (
        hooked(CI, dialog_at=NOW - 1, check=CheckState.SUCCESS),
        "dialog-open",
    ),
    "a refused login is told to a person": (failed(FailureCause.ACCESS), "turn-failed"),
    "a login that all sessions have lost parks the session": (
        with_account(AccountCourse.REST, failed(FailureCause.ACCESS)),
        "park",
    ),
    "a login that only this session has not is asked about": (
        with_account(AccountCourse.ASK, failed(FailureCause.ACCESS)),
        "turn-failed",
    ),
    "a client that alone has a stale login is started again": (
        with_account(AccountCourse.RESTART, failed(FailureCause.ACCESS)),
        "login-again",
    ),
    "a session whose turn has come goes on": (
        with_account(AccountCourse.GO_ON, failed(FailureCause.ACCESS), until=NOW - HOUR),
        "resume",
    ),
    "a phase that was written before is answered when it may go on": (
        with_account(
            AccountCourse.GO_ON,
            failed(FailureCause.LIMIT, facts=replace(CI, check=CheckState.SUCCESS)),
        ),
        "ci-passed",
    ),
    "a refused request is told to a person": (failed(FailureCause.REQUEST), "turn-failed"),
    "a conversation that is refused once is tried again": (
        failed(FailureCause.CONVERSATION),
        "park",
    ),
    "one that is refused twice is given up": (
        failed(FailureCause.CONVERSATION, count=REFUSALS),
        "context-refused",
    ),
    "a person is asked if the next one is refused, too": (
        failed(FailureCause.CONVERSATION, count=REFUSALS, history=GIVEN_UP),
        "turn-failed",
    ),
    "trouble without an end is told to a person": (
        failed(FailureCause.SERVICE, count=PATIENCE),
        "turn-failed",
    ),
    "a usage limit parks the session": (failed(FailureCause.LIMIT), "park"),
    "trouble of the API parks the session": (failed(FailureCause.SERVICE), "park"),
    "a long pause is told": (
        failed(FailureCause.LIMIT, until=NOW + 2 * HOUR, history=PARKED),
        "parked-long",
    ),
    "a pause that grows long is told": (
        failed(FailureCause.SERVICE, since=NOW - 59 * MINUTE, history=PARKED),
        "parked-long",
    ),
    "while parked nothing is told to the agent": (
        failed(FailureCause.LIMIT, CI, check=CheckState.SUCCESS, history=PARKED),
        "parked",
    ),
    "the agent goes on when the limit is over": (failed(FailureCause.LIMIT, until=NOW), "resume"),
    "the agent goes on however long it was parked": (
        failed(FailureCause.LIMIT, until=NOW, history=History(started_at=NOW - 99 * HOUR)),
        "resume",
    ),
    "an agent that waits for CI is not told to go on": (
        failed(FailureCause.LIMIT, CI, until=NOW, check=CheckState.SUCCESS),
        "ci-passed",
    ),
    "an answer to what failed is handed over": (
        failed(FailureCause.ACCESS, history=told_of(FAILURE), reply="a1"),
        "reply",
    ),
    "an answer waits for the dialog, which would take it": (
        hooked(
            wrote(Phase.ESCALATE, history=asked("escalate", HOUR)), dialog_at=NOW - 1, reply="a1"
        ),
        "dialog-open",
    ),
    "an agent that ends its turn without a phase is reminded": (
        hooked(ended_at=NOW),
        "protocol-reminder",
    ),
    "an agent that ends its turn after an answer without a phase is reminded": (
        hooked(wrote(Phase.AWAITING_CI, history=answered("ci-failed", MINUTE)), ended_at=NOW),
        "protocol-reminder",
    ),
    "an agent that was reminded once is reminded again": (
        hooked(ended_at=NOW - 30, idle_since=NOW - 30, history=reminded(1)),
        "protocol-reminder",
    ),
    "people are told of an agent that was reminded twice after an answer": (
        hooked(wrote(Phase.AWAITING_CI, history=UNHEEDED), ended_at=NOW),
        "silent",
    ),
    "an agent that was reminded twice in vain is ended": (
        hooked(ended_at=NOW - 30, idle_since=NOW - 30, history=reminded(2)),
        "idle-prompt",
    ),
    "a merge ends it at once when the agent is parked": (
        merged(failed(FailureCause.LIMIT)),
        "merged-early",
    ),
    "a merge that does not come is asked for again": (
        replace(APPROVED, history=answered("approved", 30 * MINUTE)),
        "merge-reminder",
    ),
    "an agent at work is told in time": (limited(LimitStage.NEAR), "limit-near"),
    "a turn that spends too much is interrupted": (limited(LimitStage.OVER), "limit-stop"),
    "so is one that nobody knows the spending of": (
        limited(LimitStage.BLIND, held_since=NOW - BLIND_S),
        "limit-stop",
    ),
    "people are told of turns that interruptions do not end": (
        limited(LimitStage.OVER, halt=replace(HALT, defied=True)),
        "limit-runs-on",
    ),
    "whose turn was cut off is asked for a document": (
        limited(LimitStage.OVER, "idle", halt=HALT),
        "limit-handoff",
    ),
    "with the document written a person is asked": (
        limited(LimitStage.OVER, "idle", halt=replace(HALT, asked_at=NOW - HOUR)),
        "limit-asked",
    ),
    "without a reserve there is no document": (
        limited(LimitStage.SPENT, "idle", halt=HALT),
        "limit-asked",
    ),
    "people are told of a limit that holds for long": (
        limited(
            LimitStage.HELD,
            allowance=Allowance(
                LimitStage.HELD, "issue:10", "five hours: 94 % used", NOW + 2 * HOUR
            ),
            history=History(halt=HALT, done=frozenset({"limit-held:limit:issue:10"})),
        ),
        "limit-wait-long",
    ),
    "nothing begins while a limit holds": (limited(LimitStage.HELD), "limit-held"),
    "what is not known for long is told": (
        limited(
            LimitStage.HELD,
            history=History(halt=HALT, done=frozenset({"limit-held:limit:issue:10"})),
        ),
        "limit-held-long",
    ),
    "after a raise it goes on where it was cut off": (
        limited(LimitStage.FREE, "idle", halt=HALT),
        "limit-over",
    ),
    "what only waited goes on by itself": (
        limited(LimitStage.FREE, "idle", halt=replace(HALT, stops=0)),
        "limit-gone",
    ),
    "a merge that still does not come is told to a person": (
        replace(APPROVED, history=answered("merge-reminder", 30 * MINUTE)),
        "merge-stuck",
    ),
}


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_of_the_matrix(behaviour: str) -> None:
    facts, row = BEHAVIOURS[behaviour]
    assert name(decide(facts)) == row


def name(decision: Decision) -> str:
    return decision.row.name if decision.row else "nothing"


def test_every_row_is_reached_by_a_behaviour() -> None:
    assert {row for _, row in BEHAVIOURS.values()} == {row.name for row in ROWS}
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize(
    "facts",
    [
        LIVING,
        wrote(Phase.DONE, history=answered("not-merged", MINUTE)),
        replace(CI, history=answered("ci-passed", MINUTE)),
        replace(APPROVED, history=answered("approved", MINUTE)),
        wrote(Phase.ESCALATE, HOUR, asked("escalate", HOUR)),
        merged(LIVING),
        replace(LIVING, idle_since=NOW - 29),
        hooked(),
        hooked(idle_since=NOW - HOUR, history=reminded(2)),
        hooked(wrote(Phase.AWAITING_CI, history=replace(UNHEEDED, done=ONCE_TOLD)), ended_at=NOW),
    ],
)
def test_when_nothing_is_due_nothing_is_done(facts: Facts) -> None:
    assert decide(facts).row is None


def test_what_is_settled_goes_before_a_dead_agent_and_that_before_its_phase() -> None:
    dead = replace(CI, check=CheckState.SUCCESS, session=Life.GONE)
    assert name(decide(dead)) == "recover"
    assert name(decide(replace(dead, issue_open=False))) == "issue-closed"
    assert name(decide(replace(wrote(Phase.FAILED), session=Life.GONE))) == "failed"
    assert name(decide(merged(replace(wrote(Phase.DONE), session=Life.GONE)))) == "merged"


@pytest.mark.parametrize("session", Life)
def test_an_agent_whose_receipts_are_lost_is_left_to_dev_poll(session: Life) -> None:
    """A pass that came before dev-poll's took it for silent for ever, and ended it."""
    assert decide(replace(LIVING, session=session, history=History())).row is None


def test_a_merge_by_hand_of_a_closed_or_blocked_issue_is_still_a_merge() -> None:
    done = merged(wrote(Phase.DONE))
    assert name(decide(replace(done, issue_open=False))) == "merged"
    assert name(decide(replace(done, blocked=True))) == "merged"


def test_an_answer_goes_before_the_end_of_the_question() -> None:
    late = wrote(Phase.ESCALATE, 30 * HOUR, asked("escalate", 30 * HOUR))
    assert name(decide(replace(late, reply="a1"))) == "reply"
    assert name(decide(late)) == "escalation-over"


def test_a_late_result_of_ci_is_passed_on_although_a_person_is_asked() -> None:
    provisional = LastAnswer("w1", "ci-timeout", NOW - MINUTE, provisional=True)
    history = replace(asked("ci-timeout", MINUTE), answer=provisional)
    late = wrote(Phase.AWAITING_CI, HOUR, history)
    assert name(decide(late)) == "ci-pending"
    assert name(decide(replace(late, check=CheckState.SUCCESS))) == "ci-passed"


def test_the_last_round_is_not_held_against_the_answer_to_it() -> None:
    history = History(rounds=5, started_at=NOW, done=frozenset({"review-changes:r1"}))
    again = replace(CHANGES, history=history)
    assert name(decide(again)) == "review-waits"
    assert name(decide(replace(again, review_id="r2"))) == "review-exhausted"


@pytest.mark.parametrize("phase", [Phase.AWAITING_CI, Phase.AWAITING_REVIEW])
def test_without_a_pull_request_nothing_is_called_passed_or_approved(phase: Phase) -> None:
    refused = History(done=frozenset({"open-pull:w1"}), started_at=NOW)
    limits = replace(POLICY, review_required=False)
    facts = replace(wrote(phase, history=refused), pull=None, check=CheckState.NONE, policy=limits)
    assert not decide(facts).acts


def test_a_conflict_goes_before_a_failure_that_it_may_have_caused() -> None:
    assert name(decide(replace(REVIEW, conflicts=True, check=CheckState.FAILURE))) == "conflict"


def test_a_review_is_told_of_while_a_person_at_the_terminal_holds_up_the_rest() -> None:
    gone = replace(REVIEW, session=Life.GONE, hands=Hands(draft=True))
    assert name(decide(gone)) == "review-waits"


def test_nothing_is_done_twice_for_the_same_reason() -> None:
    for facts, row in BEHAVIOURS.values():
        first = decide(facts)
        done = facts.history.done | {first.key}
        second = decide(replace(facts, history=replace(facts.history, done=done)))
        assert name(second) != row, f"{row} is done twice"


def test_a_session_is_killed_before_it_is_forgotten_and_nothing_follows() -> None:
    terminal = [row for row in ROWS if any(step.verb is StepVerb.FORGET for step in row.steps)]
    assert {row.name for row in terminal} == {
        "overtaken",
        *("merged", "merged-early", "issue-closed", "pull-closed", "given-back", "blocked"),
        *("failed", "idle-prompt", "recovery-exhausted", "escalation-over"),
    }
    for row in terminal:
        verbs = [step.verb for step in row.steps]
        assert verbs[-1] is StepVerb.FORGET
        assert StepVerb.KILL in verbs
        if row.name != "overtaken":  # whose claim is another attempt's
            assert verbs.index(StepVerb.RELEASE_CLAIM) > verbs.index(StepVerb.KILL), row.name
        assert StepVerb.INJECT not in verbs[verbs.index(StepVerb.KILL) :]


def test_blocked_is_set_before_the_backlog_label_returns() -> None:
    for row in ROWS:
        verbs = [step.verb for step in row.steps]
        if StepVerb.RESTORE_BACKLOG in verbs and row.name != "given-back":
            assert verbs.index(StepVerb.LABEL_BLOCKED) < verbs.index(StepVerb.RESTORE_BACKLOG)


@pytest.mark.parametrize(
    ("open_s", "hands", "is_told"),
    [
        (4.9, None, False),
        (5.0, None, True),
        (5.0, Hands(), True),
        (5.0, Hands(typed_at=NOW - 1), True),
        (5.0, Hands(attached=True), False),
        (60.0, Hands(attached=True), True),
    ],
)
def test_a_dialog_is_told_after_seconds_unless_somebody_is_there_who_sees_it(
    open_s: float, hands: Hands | None, is_told: bool
) -> None:
    decision = decide(replace(hooked(dialog_at=NOW - open_s), hands=hands))
    assert (name(decision) == "dialog") is is_told
    assert decision.concerns_people is is_told


@pytest.mark.parametrize(
    ("facts", "wake_in_s"),
    [
        (LIVING, 29 * MINUTE),
        (replace(LIVING, policy=replace(POLICY, merge_remind_s=1)), 119 * MINUTE),
        (CI, 29 * MINUTE),
        (ANNOUNCED, 179 * MINUTE),
        (replace(REVIEW, check=CheckState.PENDING), 29 * MINUTE),
        (replace(APPROVED, hold=Hold.BLOCKED), 29 * MINUTE),
        (replace(APPROVED, hold=Hold.QUEUED), 179 * MINUTE),
        (replace(LIVING, idle_since=NOW - 10), 20),
        (crashed(2, 45), 15),
        (hooked(dialog_at=NOW - 2), 3),
        (replace(hooked(dialog_at=NOW - 10), hands=Hands(attached=True)), 50),
        (hooked(starting_at=NOW - 2), 3),
        (hooked(starting_at=NOW - 6), 9),
        (hooked(dialog_at=NOW - HOUR, history=told_of(DIALOG)), 5 * HOUR),
        (failed(FailureCause.LIMIT, history=PARKED), 10 * MINUTE),
        (failed(FailureCause.ACCESS, history=told_of(FAILURE)), 5 * HOUR),
        (wrote(Phase.ESCALATE, HOUR, asked("escalate", HOUR)), 5 * HOUR),
        (wrote(Phase.ESCALATE, HOUR, asked("escalate", 23 * HOUR, told_ago_s=HOUR)), HOUR),
    ],
)
def test_the_next_look_is_at_the_next_deadline(facts: Facts, wake_in_s: float) -> None:
    decision = decide(facts)
    assert not decision.acts
    assert decision.wake_at == pytest.approx(NOW + wake_in_s)


def test_there_is_always_a_next_look() -> None:
    stuck = wrote(Phase.DONE, history=History(done=frozenset({"not-merged:w1"}), started_at=NOW))
    assert decide(stuck).wake_at == NOW + stuck.policy.agent_timeout_s


def test_a_reminder_interval_of_zero_means_never() -> None:
    history = asked("escalate", 23 * HOUR)
    facts = replace(wrote(Phase.ESCALATE, HOUR, history), policy=replace(POLICY, remind_s=0))
    assert decide(facts).row is None
    assert decide(facts).wake_at == NOW + HOUR


def test_a_start_that_failed_because_of_the_machine_is_tried_again_without_end() -> None:
    start = FalseStart(NOW - MINUTE, "no such file", tries=2, resume="c1")
    for recoveries in (0, 3, 9):
        facts = replace(crashed(recoveries, MINUTE), false_start=start)
        assert name(decide(facts)) == "recover"
        later = replace(facts, false_start=replace(start, tries=3))
        assert name(decide(later)) == "recovery-pause"
    nothing = replace(facts.policy, max_recoveries=0)
    assert name(decide(replace(facts, policy=nothing))) == "recovery-exhausted"


def test_a_conversation_is_resumed_once_and_again_if_no_agent_could_be_started() -> None:
    signs = Signs(doing="dead", context="c1")
    assert replace(crashed(0, MINUTE), signs=signs).resumes == "c1"
    assert replace(crashed(1, MINUTE), signs=signs).resumes == ""
    assert replace(LIVING, signs=signs).resumes == ""
    start = FalseStart(NOW - MINUTE, "no such file", resume="c1")
    assert replace(crashed(0, MINUTE), false_start=start).resumes == "c1"
    assert crashed(0, MINUTE).resumes == ""
    refused = replace(signs, failure=Failure(NOW, FailureCause.CONVERSATION, NOW))
    assert replace(crashed(0, MINUTE), signs=refused).resumes == "", "it would be refused again"


def test_pauses_between_restarts_double() -> None:
    pauses = [crashed(count, 0).pause_until - NOW for count in (1, 2, 3)]
    assert pauses == [30, 60, 120]
    assert crashed(0, 0).pause_until == 0


def test_silence_counts_only_while_the_agent_is_expected_to_work() -> None:
    long_ago = History(started_at=NOW - 9 * HOUR)
    assert replace(LIVING, history=long_ago).stale
    assert not wrote(Phase.AWAITING_REVIEW, 5 * HOUR, long_ago).stale
    assert not wrote(Phase.ESCALATE, 5 * HOUR, asked("escalate", 5 * HOUR)).stale
    assert wrote(Phase.AWAITING_CI, 5 * HOUR, answered("ci-passed", 3 * HOUR)).stale
    assert not wrote(Phase.AWAITING_CI, 5 * HOUR, answered("ci-passed", HOUR)).stale


def test_an_agent_whose_hooks_speak_is_at_work() -> None:
    long_ago = History(started_at=NOW - 9 * HOUR)
    assert hooked(history=long_ago, active_at=NOW - 3 * HOUR).stale
    assert not hooked(history=long_ago, active_at=NOW - HOUR).stale
    assert not hooked(history=long_ago, active_at=NOW - 9 * HOUR, dialog_at=NOW - 9 * HOUR).stale
    parked = failed(
        FailureCause.LIMIT, history=long_ago, until=NOW - HOUR, active_at=NOW - 9 * HOUR
    )
    assert not parked.stale
    assert replace(parked, now=NOW + HOUR).stale


def test_a_dialog_that_was_answered_leaves_no_question() -> None:
    history = told_of(DIALOG)
    assert hooked(dialog_at=NOW - HOUR, history=history).escalated
    assert not hooked(history=history).escalated
    again = hooked(dialog_at=NOW - 2 * MINUTE, history=history)
    assert not again.escalated
    assert name(decide(again)) == "dialog"


def test_a_dialog_that_nobody_answers_ends_like_any_question() -> None:
    day_ago = Escalation(DIALOG, "dialog", NOW - 24 * HOUR, NOW)
    history = replace(told_of(DIALOG), escalations={DIALOG: day_ago})
    assert name(decide(hooked(dialog_at=NOW - HOUR, history=history))) == "escalation-over"


def test_a_question_from_before_the_dialog_is_still_asked_after_it() -> None:
    history = asked("escalate", 7 * HOUR, told_ago_s=HOUR)
    both = {**history.escalations, **told_of(DIALOG).escalations}
    escalated = wrote(Phase.ESCALATE, 8 * HOUR, replace(history, escalations=both))
    assert hooked(escalated, dialog_at=NOW - HOUR).about == DIALOG
    assert hooked(escalated).about == "w1"


def test_trouble_that_lasts_is_tried_again_while_a_person_is_asked() -> None:
    since = NOW - 5 * HOUR
    history = told_of(f"failure:{since:.3f}")
    lasting = failed(
        FailureCause.SERVICE, since=since, count=PATIENCE + 1, until=NOW, history=history
    )
    assert lasting.escalated
    assert name(decide(lasting)) == "resume"


def test_an_answer_about_the_terminal_leaves_the_phase_open() -> None:
    facts = failed(FailureCause.ACCESS, CI, history=told_of(FAILURE), reply="a1")
    row = decide(facts).row
    assert row is not None
    assert row.name == "reply"
    assert row.about(facts) == FAILURE


# People at the terminal

ENDINGS: dict[str, tuple[Facts, Disturbance]] = {
    "merged": (merged(wrote(Phase.DONE)), Disturbance.END),
    "merged-early": (merged(REVIEW), Disturbance.END),
    "issue-closed": (replace(CI, issue_open=False), Disturbance.END),
    "pull-closed": (replace(CI, pull=PullState.CLOSED), Disturbance.END),
    "given-back": (replace(LIVING, given_back=True), Disturbance.END),
    "blocked": (replace(LIVING, blocked=True), Disturbance.END),
    "failed": (wrote(Phase.FAILED), Disturbance.END),
    "idle-prompt": (WAITED_FOR, Disturbance.JUDGE),
    "login-again": (
        with_account(AccountCourse.RESTART, failed(FailureCause.ACCESS)),
        Disturbance.RESTART,
    ),
    "recover": (SILENT, Disturbance.JUDGE),
    "recovery-exhausted": (
        replace(SILENT, history=History(started_at=NOW - 2 * HOUR, recoveries=3)),
        Disturbance.JUDGE,
    ),
    "escalation-over": (
        wrote(Phase.ESCALATE, 24 * HOUR, asked("escalate", 24 * HOUR, told_ago_s=HOUR)),
        Disturbance.JUDGE,
    ),
    "context-refused": (failed(FailureCause.CONVERSATION, count=REFUSALS), Disturbance.JUDGE),
    "protocol-reminder": (hooked(ended_at=NOW), Disturbance.REMIND),
    "merge-reminder": (
        replace(APPROVED, history=answered("approved", 30 * MINUTE)),
        Disturbance.REMIND,
    ),
}
"""What each row that ends, restarts or reminds a session would do to it."""


def test_each_row_that_ends_restarts_or_reminds_a_session_waits_for_people() -> None:
    ends = {row.name for row in ROWS if any(step.verb is StepVerb.KILL for step in row.steps)}
    reminds = {"protocol-reminder", "merge-reminder"}
    ends.remove("overtaken")  # nobody may go on with it
    assert {row.name for row in ROWS if row.deed} == ends | reminds == ENDINGS.keys()


def test_a_session_whose_issue_others_have_ends_under_the_hands_of_a_person() -> None:
    hands = Hands(draft=True, typed_at=NOW, attached=True)
    assert name(decide(replace(LIVING, overtaken=True, hands=hands))) == "overtaken"


@pytest.mark.parametrize("row", ENDINGS)
@pytest.mark.parametrize(
    ("hands", "refusal"),
    [
        (Hands(draft=True), Refusal.DRAFT),
        (Hands(typed_at=NOW - TYPED_S + 1, attached=True), Refusal.TYPING),
        (Hands(typed_at=NOW - GONE_S + 1), Refusal.TYPING),
        (Hands(draft=True, typed_at=NOW, attached=True), Refusal.DRAFT),
    ],
)
def test_nothing_ends_or_reminds_a_session_in_which_somebody_types(
    row: str, hands: Hands, refusal: Refusal
) -> None:
    facts, deed = ENDINGS[row]
    assert name(decide(facts)) == row
    found = decide(replace(facts, hands=hands))
    assert name(found) == "nothing"
    assert found.held is not None
    assert (found.held.deed, found.held.refusal) == (deed, refusal)
    assert found.wake_at <= NOW + MINUTE


@pytest.mark.parametrize("row", ENDINGS)
def test_who_has_left_is_looked_for_within_seconds_and_holds_nothing_up(row: str) -> None:
    facts, deed = ENDINGS[row]
    typing = decide(replace(facts, hands=Hands(typed_at=NOW - MINUTE, attached=True)))
    assert typing.held is not None
    assert (typing.held.deed, typing.held.refusal) == (deed, Refusal.TYPING)
    assert typing.wake_at <= NOW + SOON_S
    assert name(decide(replace(facts, hands=Hands(typed_at=NOW - MINUTE)))) == row


@pytest.mark.parametrize(
    "hands", [Hands(draft=True), Hands(typed_at=NOW, attached=True), Hands(attached=True)]
)
@pytest.mark.parametrize("phase", [Phase.DONE, Phase.AWAITING_REVIEW, Phase.NONE])
def test_a_merge_is_told_and_its_issue_closed_whoever_is_at_the_terminal(
    hands: Hands, phase: Phase
) -> None:
    facts = replace(wrote(phase), pull=PullState.MERGED, hands=hands)
    assert name(decide(facts)) == "merge-seen"
    assert not decide(facts).concerns_people


def test_a_turn_over_its_budget_is_stopped_while_a_draft_keeps_the_session() -> None:
    found = decide(replace(limited(LimitStage.OVER), issue_open=False, hands=Hands(draft=True)))
    assert name(found) == "limit-stop"
    assert found.held is not None


@pytest.mark.parametrize("row", ENDINGS)
def test_a_person_who_is_only_attached_keeps_sm_from_its_own_judgement_alone(row: str) -> None:
    facts, deed = ENDINGS[row]
    found = decide(replace(facts, hands=Hands(typed_at=NOW - TYPED_S, attached=True)))
    assert (name(found) == row) == (deed is not Disturbance.JUDGE)
    ends = found.row is not None and any(step.verb is StepVerb.KILL for step in found.row.steps)
    assert not (ends and deed is Disturbance.JUDGE)


def test_a_person_who_is_attached_is_asked_once_about_an_agent_that_does_nothing() -> None:
    facts = replace(WAITED_FOR, hands=Hands(attached=True))
    asked_at = Escalation(facts.silence, "watched", NOW, NOW)
    history = replace(
        facts.history,
        escalations={facts.silence: asked_at},
        done=frozenset({f"watched:{facts.silence}"}),
    )
    told = replace(facts, history=history)
    assert decide(told).row is None
    # They leave: the question stays one. They have the agent go on: it is over.
    assert decide(replace(told, hands=None)).row is None
    at_work = hooked(told, ended_at=None, active_at=NOW, idle_since=None)
    assert not at_work.escalated
    assert decide(at_work).row is None


def test_an_agent_that_is_dead_is_restarted_beside_a_person_who_is_attached() -> None:
    dead = replace(crashed(0, MINUTE), hands=Hands(attached=True))
    assert name(decide(dead)) == "recover"
    found = decide(replace(dead, hands=Hands(typed_at=NOW)))
    assert found.held is not None
    assert found.held.deed is Disturbance.RESTART


def test_the_end_that_a_person_asks_for_by_a_command_waits_for_nobody() -> None:
    killed = replace(LIVING.history, done=frozenset({KILLED}))
    facts = replace(LIVING, blocked=True, hands=Hands(draft=True), history=killed)
    assert name(decide(facts)) == "blocked"


def test_people_are_told_and_reminded_while_an_end_waits_and_the_agent_is_told_nothing() -> None:
    closed = replace(CI, issue_open=False, check=CheckState.SUCCESS, hands=Hands(draft=True))
    assert decide(closed).row is None
    left = replace(closed, history=replace(closed.history, remarks=("held:1",)))
    assert name(decide(left)) == "remark"
    late = wrote(Phase.ESCALATE, 30 * HOUR, asked("escalate", 30 * HOUR, told_ago_s=7 * HOUR))
    for hands in (Hands(draft=True), Hands(attached=True)):
        assert name(decide(replace(late, hands=hands))) == "remind"


# Questions in plain words

ASKED = hooked(ended_at=NOW - 59, idle_since=NOW - 59, asks="A or B?", history=reminded(2))


def test_a_question_in_plain_words_is_no_step_towards_an_end() -> None:
    assert decide(ASKED).row is None
    assert decide(ASKED).wake_at == NOW + 1
    assert name(decide(replace(ASKED, now=NOW + 1))) == "question"
    later = replace(ASKED, now=NOW + 9 * HOUR)
    assert (later.idle, later.stale, later.fell_silent) == (False, False, False)


def test_a_question_in_plain_words_is_over_with_the_next_turn() -> None:
    facts = replace(ASKED, now=NOW + HOUR)
    question = Escalation(facts.matter, "question", NOW, NOW)
    history = replace(facts.history, escalations={facts.matter: question})
    told = replace(facts, history=history)
    assert told.escalated
    assert not hooked(told, active_at=NOW + HOUR).escalated
    again = hooked(told, active_at=NOW + HOUR, ended_at=NOW + HOUR)
    assert not again.escalated
    assert again.fell_silent


def test_a_question_beside_a_phase_is_no_question_to_a_person() -> None:
    facts = hooked(CI, ended_at=NOW - HOUR, asks="May I go on?")
    assert not facts.asks
    assert name(decide(facts)) == "ci-pending"


def test_an_agent_that_asks_is_not_reminded_of_its_merge() -> None:
    merging = replace(APPROVED, history=answered("approved", 30 * MINUTE))
    facts = hooked(merging, ended_at=NOW - HOUR, asks="Shall I merge?")
    assert name(decide(facts)) == "question"


# A session that is asked before people


def consulted(facts: Facts, ago_s: float, **more: object) -> Facts:
    """The session was asked what the agent asks, and nobody has answered."""
    matter = facts.matter or facts.write
    row = "question" if facts.matter else "escalate"
    asked_at = NOW - ago_s
    question = Escalation(matter, row, asked_at, asked_at, first="gardener", since=asked_at)
    done = frozenset({f"first-{row}:{matter}"})
    history = replace(facts.history, escalations={matter: question}, done=done)
    return replace(facts, history=history, first_there=True, **more)


QUESTIONS = {
    "escalate": wrote(Phase.ESCALATE, HOUR),
    "question": hooked(ended_at=NOW - HOUR, idle_since=NOW - HOUR, asks="A or B?"),
}


@pytest.mark.parametrize("row", QUESTIONS)
def test_people_are_asked_once_the_session_that_was_asked_before_has_had_its_time(row: str) -> None:
    facts = QUESTIONS[row]
    assert name(decide(replace(facts, first_there=True))) == f"first-{row}"
    waits = decide(consulted(facts, 10 * MINUTE - 1))
    assert (waits.row, waits.wake_at) == (None, NOW + 1)
    assert name(decide(consulted(facts, 10 * MINUTE))) == row


@pytest.mark.parametrize("row", QUESTIONS)
def test_people_are_asked_as_soon_as_the_session_that_was_asked_before_is_gone(row: str) -> None:
    facts = consulted(QUESTIONS[row], MINUTE)
    assert decide(facts).wake_at <= NOW + MINUTE
    assert name(decide(replace(facts, first_there=False))) == row
    assert name(decide(QUESTIONS[row])) == row, "it never was there"


@pytest.mark.parametrize("row", QUESTIONS)
def test_what_the_session_answers_reaches_the_agent_also_at_the_last_moment(row: str) -> None:
    for ago_s in (MINUTE, HOUR):
        assert name(decide(consulted(QUESTIONS[row], ago_s, reply="a1"))) == "reply"
    opened = consulted(QUESTIONS["escalate"], HOUR, reply="a1")
    assert name(decide(hooked(opened, dialog_at=NOW - 1))) != "escalate", "it has its answer"


@pytest.mark.parametrize("matter", [DIALOG, FAILURE])
def test_dialogs_and_failures_are_never_put_to_the_session(matter: str) -> None:
    dialog = hooked(dialog_at=NOW - HOUR, first_there=True)
    broken = failed(FailureCause.ACCESS, first_there=True)
    row = name(decide(dialog if matter == DIALOG else broken))
    assert row == ("dialog" if matter == DIALOG else "turn-failed")


def test_nothing_but_questions_is_put_to_the_session() -> None:
    asking = [row.name for row in ROWS if any(step.verb is StepVerb.CONSULT for step in row.steps)]
    assert asking == ["first-escalate", "first-question"]


def test_a_refused_step_is_told_to_people_while_the_session_has_its_time() -> None:
    facts = consulted(QUESTIONS["escalate"], MINUTE)
    history = replace(facts.history, troubles=("open-pull:w1",))
    assert name(decide(replace(facts, history=history))) == "trouble"


def test_no_limit_of_people_counts_while_the_session_has_its_time() -> None:
    limits = replace(POLICY, first_for_s=48 * HOUR)
    facts = replace(consulted(QUESTIONS["escalate"], 30 * HOUR), policy=limits)
    assert decide(facts).row is None


def test_the_document_shows_the_matrix_as_it_is() -> None:
    document = REPOSITORY / "docs" / "PROTOCOL.md"
    shown = document.read_text(encoding="utf-8")
    assert matrix_table() in shown, f"write this table into docs/PROTOCOL.md:\n\n{matrix_table()}"


DURATIONS = [name for name in Policy.__struct_fields__ if name.endswith("_s")]


@pytest.mark.parametrize("row", [row for row in ROWS if row.limit], ids=lambda row: row.name)
def test_the_limits_of_a_decision_can_be_written_down(row: Row) -> None:
    """Those of a configuration are durations, with a type of their own."""
    configured = replace(POLICY, **{name: Seconds(90) for name in DURATIONS})
    assert json.loads(msgspec.json.encode(row.list_limits(configured)))


# After a pause


LATE: dict[str, Facts] = {
    "recover": SILENT,
    "ci-timeout": replace(CI, written_at=NOW - HOUR),
    "ci-late": replace(REVIEW, written_at=NOW - HOUR, check=CheckState.PENDING),
    "review-timeout": replace(ANNOUNCED, written_at=NOW - 3 * HOUR),
    "escalation-over": ENDINGS["escalation-over"][0],
    "remind": wrote(Phase.ESCALATE, 7 * HOUR, asked("escalate", 7 * HOUR)),
    "idle-prompt": WAITED_FOR,
    "dialog": hooked(dialog_at=NOW - MINUTE),
    "merge-reminder": ENDINGS["merge-reminder"][0],
    "merge-held": replace(APPROVED, written_at=NOW - HOUR, hold=Hold.BLOCKED),
}
"""What is late, by the row that says so."""


@pytest.mark.parametrize("row", LATE)
def test_no_time_counts_from_before_the_end_of_a_pause(row: str) -> None:
    late = LATE[row]
    assert name(decide(late)) == row
    resumed = replace(late, resumed_at=NOW - 1)
    found = decide(resumed)
    assert name(found) != row
    assert found.wake_at > NOW
    alone = (BY_NAME[row],)
    assert decide(replace(resumed, now=NOW + 25 * HOUR), alone).row is BY_NAME[row]


YEAR = 365 * 24 * HOUR


@pytest.mark.parametrize("fault", [FailureCause.ACCESS, FailureCause.LIMIT, FailureCause.SERVICE])
@pytest.mark.parametrize(
    "facts",
    [
        LIVING,
        replace(LIVING, idle_since=NOW - HOUR),
        replace(CI, check=CheckState.SUCCESS),
        replace(CI, check=CheckState.FAILURE),
        wrote(Phase.ESCALATE, HOUR, asked("escalate", HOUR)),
        replace(wrote(Phase.ESCALATE, HOUR, asked("escalate", HOUR)), reply="c1"),
    ],
)
def test_a_session_whose_account_has_a_fault_rests_however_long_a_person_sleeps(
    facts: Facts, fault: FailureCause
) -> None:
    first = with_account(AccountCourse.REST, failed(fault, facts), until=NOW + 2 * YEAR)
    done = replace(first.history, done=first.history.done | {f"park:{FAILED_AT:.3f}"})
    for later in (0.0, HOUR, 24 * HOUR, YEAR):
        now = replace(first, history=done, now=NOW + later)
        found = decide(now)
        assert name(found) in ("parked", "remind"), later
        assert not now.crashed
        assert not now.matter


def test_a_person_who_is_attached_is_not_asked_about_a_session_that_rests() -> None:
    long_ago = replace(LIVING, history=History(started_at=NOW - YEAR))
    silent = failed(FailureCause.ACCESS, long_ago, until=NOW - YEAR, active_at=NOW - YEAR)
    facts = with_account(AccountCourse.REST, silent, hands=Hands(attached=True))
    assert name(decide(replace(facts, account=None))) == "watched"
    assert name(decide(facts)) == "park"


def test_a_question_about_a_stale_login_ends_no_session() -> None:
    matter = f"failure:{FAILED_AT:.3f}"
    key = f"turn-failed:{matter}:0"
    question = Escalation(matter, "turn-failed", NOW - YEAR, NOW - MINUTE)
    history = History(started_at=NOW - YEAR, done=frozenset({key}), escalations={matter: question})
    facts = failed(FailureCause.ACCESS, until=NOW - YEAR, history=history)
    assert name(decide(facts)) == "escalation-over"
    alone = with_account(AccountCourse.ASK, facts)
    assert alone.escalated
    assert name(decide(alone)) not in ("escalation-over", "recover")


def test_an_agent_that_is_gone_is_not_restarted_without_a_login() -> None:
    gone = replace(LIVING, session=Life.GONE)
    assert name(decide(gone)) == "recover"
    rests = with_account(AccountCourse.REST, gone, until=NOW + HOUR)
    assert not decide(rests).acts
    assert not decide(replace(rests, now=NOW + 30 * 24 * HOUR)).acts


def test_after_a_long_rest_it_goes_on_and_counts_as_no_crash() -> None:
    slept = failed(FailureCause.ACCESS, until=NOW - YEAR, history=History(started_at=NOW - YEAR))
    assert name(decide(with_account(AccountCourse.GO_ON, slept, until=NOW - MINUTE))) == "resume"


def test_a_restart_for_a_stale_login_resumes_its_conversation_and_is_no_attempt() -> None:
    facts = with_account(AccountCourse.RESTART, failed(FailureCause.ACCESS, context="c1"))
    assert facts.resumes == "c1"
    row = BY_NAME["login-again"]
    key = row.key(facts)
    steps = [
        Receipt(NOW, key, row.name, verb=StepVerb.RECOVER, resumed="c1"),
        Receipt(NOW, key, row.name, counts=row.counts),
    ]
    before = [Receipt(NOW - HOUR, "recover:0", "recover", verb=StepVerb.RECOVER)]
    assert fold([*before, *steps]).recoveries == 1
    assert fold(steps).recoveries == 0
