"""What a person is needed for, by the row that asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from sm.adapters.forge.model import Check, CheckState, Hold, PullState, ReviewState
from sm.base.need import NeedKind
from sm.base.phase import Phase
from sm.issues.rules import needs
from sm.issues.rules.decide import decide
from sm.issues.rules.facts import Facts
from sm.issues.rules.matrix import ROWS
from sm.issues.rules.needs import KINDS, Case, describe_need, find_kind, find_waiting
from sm.issues.rules.notices import NOTICES, find_answer, write_notice, write_short_notice
from sm.sessions.account_fault import AccountCourse
from sm.sessions.failure import Failure, FailureCause
from sm.sessions.history import StepVerb
from sm.sessions.signs import PATIENCE_S
from tests.issues.rules.test_decide import (
    HOUR,
    LIVING,
    MINUTE,
    NOW,
    asked,
    failed,
    hooked,
    reminded,
    with_account,
    wrote,
)
from tests.issues.rules.test_prompts import material


def test_each_row_that_asks_says_what_a_person_is_needed_for() -> None:
    asking = {row.name for row in ROWS if any(step.verb is StepVerb.NOTIFY for step in row.steps)}
    assert asking <= set(KINDS)


def test_each_row_that_blocks_an_issue_says_what_a_person_is_needed_for() -> None:
    blocking = {
        row.name for row in ROWS if any(s.verb is StepVerb.LABEL_BLOCKED for s in row.steps)
    }
    assert blocking <= set(KINDS)


def test_an_agent_that_is_locked_out_needs_a_login() -> None:
    assert find_kind("turn-failed", locked_out=True) is NeedKind.LOGIN
    assert find_kind("turn-failed") is NeedKind.LIMITS
    assert describe_need(Case("turn-failed", "shop#7", locked_out=True)).kind is NeedKind.LOGIN


def test_a_fault_of_an_account_is_no_need_of_a_session_unless_it_is_alone() -> None:
    for fault in (FailureCause.ACCESS, FailureCause.LIMIT, FailureCause.SERVICE):
        locked_out = failed(fault, until=NOW - HOUR)
        assert find_waiting(with_account(AccountCourse.REST, locked_out)) is None
        assert find_waiting(with_account(AccountCourse.GO_ON, locked_out)) is None
    alone = find_waiting(with_account(AccountCourse.ASK, failed(FailureCause.ACCESS)))
    assert alone
    assert alone.row == "turn-failed"


def test_the_need_of_an_account_names_it_and_how_many_sessions_rest() -> None:
    case = Case(
        "account",
        "shop#7",
        reason=str(FailureCause.ACCESS),
        failure="Please run /login",
        account="Codex (~/.codex)",
        resting=5,
        locked_out=True,
    )
    need = describe_need(case)
    assert (need.kind, need.command) == (NeedKind.LOGIN, "sm attach shop 7")
    assert need.tell("") == (
        "Login of Codex (~/.codex): no access to the API, 5 sessions rest until that is over "
        "(“Please run /login”)"
    )
    limit = describe_need(replace(case, reason="usage limit", resting=1, locked_out=False))
    assert (limit.kind, limit.cause) == (
        NeedKind.LIMITS,
        "Codex (~/.codex): usage limit, 1 session rests until that is over",
    )
    assert describe_need(replace(case, address="ann")).command == "sm attach ann"


def test_what_asks_nobody_needs_nobody() -> None:
    assert find_kind("merged") is None
    assert set(needs.CAUSES) <= set(KINDS)


@pytest.mark.parametrize("text", sorted(NOTICES))
def test_each_notice_that_needs_a_person_has_the_command_that_answers(text: str) -> None:
    rows = [row.name for row in ROWS if any(step.text == text for step in row.steps)]
    for row in rows:
        need, command = find_answer(text, material(row=row))
        assert bool(need) is bool(command), (text, row)
        assert need is (find_kind(row) if text != "reminder" else NeedKind.QUESTION)


def test_a_review_that_waits_is_told_with_the_command_that_gives_it() -> None:
    told = material(row="review-waits")
    assert find_answer("review-waits", told) == (NeedKind.REVIEW, "sm review demo#4 --approve")
    assert write_short_notice("review-waits", told) == (
        "pull request #4 waits for a review: words. sm review demo#4 --approve"
    )
    assert "`sm pr diff demo#4`" in write_notice("review-waits", told)


def test_ci_that_waits_for_an_approval_is_told_with_its_address() -> None:
    page = "https://ci.example.com/repos/1/pipeline/4/1"
    check = Check(CheckState.PENDING, "c1", url=page, at=NOW, unapproved="ci/woodpecker")
    told = material(row="ci-unapproved", check=check)
    assert find_answer("ci-unapproved", told) == (NeedKind.CI, page)
    assert write_short_notice("ci-unapproved", told) == f"waits for an approval of CI: {page}"
    assert page in write_notice("ci-unapproved", told)
    for row in ("ci-timeout", "ci-late"):
        assert page in write_notice(row, material(row=row, check=check)), "also later"


def test_a_reminder_answers_what_was_asked() -> None:
    reminder = material(row="remind", asked_row="merge-held")
    assert find_answer("reminder", reminder) == (NeedKind.MERGE, "sm pr merge demo#4")


def test_a_blocked_issue_is_answered_by_taking_it_up_again() -> None:
    command = "sm issue label demo#7 --remove blocked --add backlog"
    assert find_answer("unanswered", material(row="escalation-over")) == (
        NeedKind.BLOCKED,
        command,
    )
    assert find_answer("stopped", material(row="issue-closed")) == (None, "")


REVIEWED = replace(
    wrote(Phase.AWAITING_REVIEW), check=CheckState.SUCCESS, check_at=NOW - MINUTE / 2
)
CHANGES = replace(REVIEWED, review=ReviewState.CHANGES_REQUESTED, review_id="r1")
TOLD_CHANGES = replace(REVIEWED.history, done=frozenset({"review-changes:r1"}))
HELD = replace(REVIEWED, review=ReviewState.APPROVED, hold=Hold.BLOCKED)
ENDED = hooked(ended_at=NOW - 5)
QUESTION = hooked(ended_at=NOW - 5, asks="Up or down?")


def waiting(facts: Facts) -> str:
    found = find_waiting(facts)
    return found.row if found else ""


@pytest.mark.parametrize(
    ("facts", "row"),
    [
        (LIVING, ""),
        (wrote(Phase.AWAITING_CI), ""),
        (wrote(Phase.AWAITING_REVIEW), ""),
        (replace(wrote(Phase.AWAITING_CI), check_unapproved=True), "ci-unapproved"),
        (REVIEWED, "review-waits"),
        (replace(REVIEWED, conflicts=True), ""),
        (replace(REVIEWED, review=ReviewState.APPROVED), ""),
        (CHANGES, ""),
        (replace(CHANGES, history=TOLD_CHANGES), "review-waits"),
        (replace(REVIEWED, policy=replace(REVIEWED.policy, review_required=False)), ""),
        (HELD, ""),
        (replace(HELD, now=NOW + PATIENCE_S), "merge-held"),
        (replace(HELD, now=NOW + PATIENCE_S, hold=Hold.QUEUED), ""),
        (hooked(dialog_at=NOW - 1), "dialog"),
        (QUESTION, "question"),
        (replace(ENDED, history=reminded(0)), ""),
        (replace(ENDED, history=reminded(1)), ""),
        (replace(ENDED, history=reminded(1), now=NOW + PATIENCE_S), "silent"),
        (replace(ENDED, history=reminded(2)), "silent"),
        (replace(wrote(Phase.ESCALATE), written_at=NOW - 1), ""),
        (wrote(Phase.ESCALATE), "escalate"),
        (replace(wrote(Phase.ESCALATE), reply="r1"), ""),
        (hooked(failure=Failure(NOW - 1, FailureCause.ACCESS, 0.0)), ""),
        (hooked(failure=Failure(NOW - 11, FailureCause.ACCESS, 0.0)), "turn-failed"),
        (hooked(failure=Failure(NOW - 11, FailureCause.LIMIT, 0.0)), ""),
        (wrote(Phase.FAILED), "failed"),
        (wrote(Phase.ESCALATE, history=asked("escalate", HOUR)), "escalate"),
    ],
)
def test_a_session_needs_a_person_as_soon_as_one_can_help(facts: Facts, row: str) -> None:
    assert waiting(facts) == row


@pytest.mark.parametrize(
    "settled",
    [
        lambda f: replace(f, pull=PullState.MERGED),
        lambda f: replace(f, pull=PullState.CLOSED),
        lambda f: replace(f, blocked=True),
        lambda f: replace(f, issue_open=False),
    ],
)
def test_what_is_about_to_end_needs_nobody(settled: Callable[[Facts], Facts]) -> None:
    question = wrote(Phase.ESCALATE, history=asked("escalate", HOUR))
    assert not waiting(settled(question))
    assert not waiting(settled(REVIEWED))


def name_row(facts: Facts) -> str:
    row = decide(facts).row
    return row.name if row else ""


def test_a_question_needs_a_person_also_when_the_clock_was_set_back_since() -> None:
    long_ago = hooked(ended_at=0.0, asks="Up or down?")
    found = find_waiting(long_ago)
    assert found is not None
    assert found.row == "question"
    assert name_row(long_ago) == "question"
    silent = hooked(ended_at=0.0)
    assert name_row(silent) == "protocol-reminder"


def test_a_question_that_was_answered_needs_nobody() -> None:
    question = wrote(Phase.ESCALATE, history=asked("escalate", HOUR))
    assert not waiting(replace(question, reply="r1"))
    dialog = replace(hooked(question, dialog_at=NOW), reply="r1")
    assert waiting(dialog) == "dialog"  # which keeps the answer from the agent


def test_a_need_stays_the_same_when_a_person_is_asked_about_it() -> None:
    key = QUESTION.matter
    put = replace(QUESTION, history=asked("question", 1, write=key))
    before, after = find_waiting(QUESTION), find_waiting(put)
    assert before
    assert after
    assert (before.matter, before.since) == (after.matter, after.since)
    late = replace(REVIEWED, history=asked("review-timeout", 1))
    before, after = find_waiting(REVIEWED), find_waiting(late)
    assert before
    assert after
    assert after.row == "review-timeout"
    assert (before.matter, before.since) == (after.matter, after.since) == ("w1:c1", NOW - 30)


def test_a_question_that_was_not_put_yet_is_answered_by_a_message() -> None:
    assert describe_need(Case("question", "shop#7")).command == "sm reply shop 7 TEXT"
    for row in ("question", "escalate", "turn-failed"):
        unasked = describe_need(Case(row, "shop#7", unasked=True))
        assert unasked.command == "sm send shop#7 TEXT"
