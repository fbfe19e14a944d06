"""Who holds a slot, and which reactions wait for one: `max_sessions` counts agents at work."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sm.adapters.forge.model import CheckState
from sm.base.phase import Phase
from sm.issues.rules.decide import decide
from sm.issues.rules.decision_input import Life
from sm.issues.rules.facts import Facts
from sm.issues.rules.matrix import BY_NAME
from sm.sessions.failure import PATIENCE, FailureCause
from sm.sessions.presence_rule import Hands
from tests.issues.rules.test_decide import (
    ANNOUNCED,
    APPROVED,
    CHANGES,
    CI,
    DIALOG,
    HOUR,
    LIVING,
    NOW,
    REVIEW,
    SILENT,
    answered,
    asked,
    crashed,
    failed,
    hooked,
    told_of,
    wrote,
)
from tests.policy import POLICY

GREEN = replace(CI, check=CheckState.SUCCESS)
RED = replace(CI, check=CheckState.FAILURE)
QUEUED = {"slotless": True, "slot_at": NOW}
ASKED = replace(
    wrote(Phase.ESCALATE, history=asked("escalate", HOUR)), check=CheckState.NONE, pull=None
)
LIMITED_AGAIN = failed(FailureCause.LIMIT, until=NOW - 1)
"""Its limit is over."""

AT_WORK = {
    "it is about to start": Facts(now=NOW, policy=POLICY),
    "it works": LIVING,
    "its agent has died at work": crashed(0, HOUR),
    "it was told to merge": replace(APPROVED, history=answered("approved", 10)),
    "its turn has ended without a phase": hooked(ended_at=NOW - 5, idle_since=NOW - 5),
    "its turn has failed, and is tried again in a minute": failed(FailureCause.SERVICE),
    "it has met a usage limit, as any other would": failed(FailureCause.LIMIT),
    "it has met a limit for hours": failed(FailureCause.LIMIT, count=PATIENCE),
    "its limit is over": LIMITED_AGAIN,
    "it goes on after it has asked for CI": hooked(CI, doing="busy"),
    "somebody has typed to it while it waits": hooked(REVIEW, doing="busy"),
}
WAITS = {
    "for CI": CI,
    "for a review": REVIEW,
    "for a review, and its turn is over": hooked(REVIEW, doing="idle"),
    "for a review, and a task runs in its background": hooked(REVIEW, doing="waiting"),
    "for a review, and it has said nothing for hours": hooked(
        REVIEW, doing="busy", active_at=NOW - 3 * HOUR
    ),
    "for an answer": ASKED,
    "for an answer, and its agent has died": replace(ASKED, session=Life.GONE),
    "for an answer to a plain question": hooked(ended_at=NOW - 5, asks="Which one?"),
    "for a dialog": hooked(dialog_at=NOW - HOUR, history=told_of(DIALOG)),
    "for an API that has failed for hours": failed(FailureCause.SERVICE, count=PATIENCE),
    "for a login": failed(FailureCause.ACCESS),
}
NEED = {
    "CI has passed": (GREEN, "ci-passed"),
    "CI has failed": (RED, "ci-failed"),
    "a reviewer wants changes": (CHANGES, "review-changes"),
    "it may merge": (APPROVED, "approved"),
    "its limit is over": (LIMITED_AGAIN, "resume"),
    "its agent has died while it waited": (
        replace(crashed(0, HOUR), phase=Phase.AWAITING_REVIEW, write="w1"),
        "recover",
    ),
}
NEVER_WAIT = {
    "a person's answer": (replace(ASKED, reply="a1"), "reply"),
    "a restart for a person's answer": (
        replace(ASKED, session=Life.GONE, reply="a1"),
        "recover",
    ),
    "a merge by sm": (
        replace(APPROVED, policy=replace(APPROVED.policy, merge_by_sm=True)),
        "approved-merge",
    ),
    "the end": (replace(REVIEW, issue_open=False), "issue-closed"),
    "word to a person that a review is late": (
        replace(ANNOUNCED, written_at=NOW - 4 * HOUR),
        "review-timeout",
    ),
    "a message to an agent whose turn runs": (hooked(GREEN, doing="busy"), "ci-passed"),
}


@pytest.mark.parametrize("facts", AT_WORK.values(), ids=AT_WORK)
def test_an_agent_at_work_holds_a_slot(facts: Facts) -> None:
    assert facts.is_at_work


@pytest.mark.parametrize("facts", WAITS.values(), ids=WAITS)
def test_a_session_that_waits_holds_none(facts: Facts) -> None:
    assert not facts.is_at_work


@pytest.mark.parametrize(("facts", "row"), NEED.values(), ids=NEED)
def test_work_for_an_agent_waits_for_a_slot(facts: Facts, row: str) -> None:
    found = decide(facts)
    assert found.row is BY_NAME[row]
    assert found.row.needs_slot(facts)
    waits = decide(replace(facts, **QUEUED))
    assert waits.queued
    assert not waits.acts


@pytest.mark.parametrize(("facts", "row"), NEVER_WAIT.values(), ids=NEVER_WAIT)
def test_these_never_wait_for_a_slot(facts: Facts, row: str) -> None:
    found = decide(replace(facts, **QUEUED))
    assert found.row is BY_NAME[row]
    assert not found.queued


def test_no_timer_counts_against_an_agent_that_waits_for_a_slot() -> None:
    """It was told nothing, so nothing is expected of it."""
    late = replace(LIMITED_AGAIN, now=NOW + 5 * HOUR)
    assert late.stale
    assert not replace(late, slotless=True, slot_at=late.now).stale
    assert SILENT.stale
    assert not replace(SILENT, slot_at=NOW - 60).stale  # it has its slot since a minute


def test_a_timer_of_something_else_does_not_run_out_while_work_waits() -> None:
    """The review is there; that it was late is no news any more."""
    late = replace(CHANGES, written_at=NOW - 4 * HOUR)
    waits = decide(replace(late, **QUEUED))
    assert waits.queued
    assert waits.row is None


def test_a_person_is_reminded_while_work_waits_for_a_slot() -> None:
    gone = replace(ASKED, session=Life.GONE, history=asked("escalate", 7 * HOUR))
    found = decide(replace(gone, **QUEUED))
    assert found.row is BY_NAME["remind"]
    assert found.queued


def test_a_restart_waits_for_people_first() -> None:
    gone = replace(
        crashed(0, HOUR), phase=Phase.AWAITING_REVIEW, write="w1", hands=Hands(draft=True), **QUEUED
    )
    found = decide(gone)
    assert found.held
    assert not found.queued


def test_an_agent_that_seems_busy_is_looked_at_again_when_that_has_lost_its_meaning() -> None:
    busy = hooked(ANNOUNCED, doing="busy", active_at=NOW - HOUR)
    assert decide(busy).wake_at == NOW - HOUR + busy.policy.agent_timeout_s


def test_an_approval_is_no_work_where_sm_merges() -> None:
    assert not BY_NAME["approved-merge"].gives_work
    assert not BY_NAME["ci-timeout"].gives_work
    assert BY_NAME["approved"].gives_work
    assert BY_NAME["recover"].gives_work
