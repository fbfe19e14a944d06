"""What a person is needed for, by the row that asks."""

from __future__ import annotations

from sm.base.need import NeedKind
from sm.issues.rules import needs
from sm.issues.rules.matrix import ROWS
from sm.issues.rules.needs import KINDS, Case, describe_need, find_kind
from sm.sessions.history import Verb


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
