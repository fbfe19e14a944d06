"""What a person is needed for, by the row that asks."""

from __future__ import annotations

import pytest

from sm.base.need import NeedKind
from sm.issues.rules import needs
from sm.issues.rules.matrix import ROWS
from sm.issues.rules.needs import KINDS, Case, describe_need, find_kind
from sm.issues.rules.notices import NOTICES, find_answer, write_notice, write_short_notice
from sm.sessions.history import Verb
from tests.issues.rules.test_prompts import material


def test_each_row_that_asks_says_what_a_person_is_needed_for() -> None:
    asking = {row.name for row in ROWS if any(step.verb is Verb.NOTIFY for step in row.steps)}
    assert asking <= set(KINDS)


def test_each_row_that_blocks_an_issue_says_what_a_person_is_needed_for() -> None:
    blocking = {row.name for row in ROWS if any(s.verb is Verb.LABEL_BLOCKED for s in row.steps)}
    assert blocking <= set(KINDS)


def test_an_agent_that_is_locked_out_needs_a_login() -> None:
    assert find_kind("turn-failed", locked_out=True) is NeedKind.LOGIN
    assert find_kind("turn-failed") is NeedKind.LIMITS
    assert describe_need(Case("turn-failed", "shop#7", locked_out=True)).kind is NeedKind.LOGIN


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
