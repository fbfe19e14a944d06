"""Limits: all combinations of what counts, and the stories from a broken limit to its end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from sm.adapters.forge.model import CheckState, PullState, ReviewState
from sm.base.phase import Phase
from sm.issues.rules.allowance import (
    BLIND_S,
    HOLDING,
    STOPPING,
    STOPS,
    Allowance,
    LimitStage,
)
from sm.issues.rules.decide import decide
from sm.issues.rules.decision_input import Life
from sm.issues.rules.facts import Facts
from sm.issues.rules.matrix import BY_NAME
from sm.issues.rules.needs import Case, describe_need, find_waiting
from sm.issues.rules.rows import Row
from sm.issues.rules.spending import (
    AFTER_LIMIT,
    AT_LIMIT,
    BEGINS_S,
    LIMIT_STOP,
    PATIENCE_S,
    TYPING_S,
    WHILE_PAUSED,
    WRITING_S,
    must_stop,
    tell_turn,
)
from sm.sessions.history import (
    DEFIED,
    LIMIT,
    STOPPED,
    Count,
    Halt,
    History,
    Receipt,
    StepVerb,
    fold,
)
from sm.sessions.signs import Signs
from tests.policy import POLICY

NOW, HOUR = 1_000_000.0, 3600.0
MATTER = "issue:10"
KEY = f"{LIMIT}{MATTER}"
NONE: Facts = Facts(now=NOW, policy=POLICY, history=History(started_at=NOW - HOUR))


def limited(stage: LimitStage | None, until: float | None = None) -> Allowance | None:
    return Allowance(stage, MATTER, "as much", until) if stage else None


HALTS = (
    None,
    Halt(KEY, NOW - 1),
    Halt(KEY, NOW - 1, stops=1),
    Halt(KEY, NOW - 2 * TYPING_S, stops=1),
    Halt(KEY, NOW - 20, stops=1, asked_at=NOW - 1, document="/d.md"),
    Halt(KEY, NOW - HOUR, stops=STOPS, asked_at=NOW - 2 * WRITING_S, document="/d.md"),
)
SINCE = (NOW - HOUR, NOW - 10, NOW - 0.5)
WORK: tuple[dict[str, Any], ...] = (
    {},
    {"phase": Phase.AWAITING_CI, "check": CheckState.FAILURE},
    {"phase": Phase.AWAITING_REVIEW, "review": ReviewState.CHANGES_REQUESTED, "review_id": "r1"},
    {"phase": Phase.AWAITING_REVIEW, "review": ReviewState.APPROVED, "check": CheckState.SUCCESS},
    {"phase": Phase.DONE},
    {"edit": "e1"},
)


def combine() -> Iterator[Facts]:
    """Every stage, whatever the agent does, has been told, and has to be told."""
    doings = [Signs(doing=d, since=s) for d in ("busy", "idle", "waiting") for s in SINCE]
    for stage, halt, signs, life, work, by_sm in itertools.product(
        (None, *LimitStage), HALTS, (None, *doings), Life, WORK, (False, True)
    ):
        idle = signs and signs.doing == "idle"
        told = (
            replace(signs, active_at=NOW, ended_at=signs.since if idle else None) if signs else None
        )
        yield replace(
            NONE,
            policy=replace(POLICY, merge_by_sm=by_sm),
            allowance=limited(stage),
            history=replace(NONE.history, halt=halt),
            signs=told,
            session=life,
            write="w1" if "phase" in work else "",
            written_at=NOW - HOUR if "phase" in work else 0.0,
            pushed=True,
            pull=PullState.OPEN if "phase" in work else None,
            head="c1",
            **work,
        )


def settle(facts: Facts) -> list[Row]:
    """The rows that act until nothing is left, as if each of them were done at once."""
    acted: list[Row] = []
    for _ in range(12):
        decision = decide(facts)
        if decision.row is None or not decision.acts:
            return acted
        acted.append(decision.row)
        done = facts.history.done | {decision.key}
        facts = replace(facts, history=replace(facts.history, done=done))
    raise AssertionError([row.name for row in acted])


OURS = {row.name for row in (*AT_LIMIT, *AFTER_LIMIT, BY_NAME["limit-near"])}


def test_in_every_combination_nothing_works_that_may_not_and_nothing_else_is_held_up() -> None:
    seen = set()
    for facts in combine():
        stage = facts.allowance.stage if facts.allowance else None
        acted = settle(facts)
        names = {row.name for row in acted}
        seen |= names & OURS
        if stage in HOLDING:
            assert not any(row.spends for row in acted), (names, facts)
            assert not any(row.deed for row in acted), (names, facts)
        else:
            assert names.isdisjoint({row.name for row in AT_LIMIT}), (names, facts)
        if stage not in (*STOPPING, LimitStage.BLIND):
            assert "limit-stop" not in names, facts
        if facts.allowance is None and facts.history.halt is None:
            assert names.isdisjoint(OURS), (names, facts)
        if stage in STOPPING and facts.signs and facts.turn_runs and facts.session is Life.ALIVE:
            writes = "limit-stop" not in names
            asked_at = facts.history.halt.asked_at if facts.history.halt else 0.0
            assert not writes or (stage is LimitStage.OVER and asked_at > NOW - WRITING_S), facts
        mergeable = facts.review is ReviewState.APPROVED and facts.policy.merge_by_sm
        if stage in HOLDING and mergeable and facts.check is CheckState.SUCCESS:
            assert "approved-merge" in names, (names, facts)
    assert seen == OURS - {"limit-wait-long"}, "which needs a limit that ends by itself"


@pytest.mark.parametrize("stage", sorted(HOLDING))
@pytest.mark.parametrize("life", Life)
def test_no_time_counts_against_an_agent_that_may_spend_nothing(
    stage: LimitStage, life: Life
) -> None:
    for doing in ("idle", "busy", ""):
        late = replace(
            NONE,
            now=NOW + 100 * HOUR,
            allowance=limited(stage),
            session=life,
            signs=Signs(doing=doing, since=NOW, ended_at=NOW if doing == "idle" else None),
            idle_since=NOW,
        )
        for facts in (late, replace(late, signs=None)):
            assert {row.name for row in settle(facts)} <= OURS, facts
            assert not facts.crashed
            assert not facts.idle
            assert facts.answer_due_at == float("inf")


@pytest.mark.parametrize("stage", sorted(HOLDING))
def test_people_and_the_forge_still_settle_it(stage: LimitStage) -> None:
    held = replace(NONE, allowance=limited(stage), signs=Signs(doing="idle", since=NOW - HOUR))
    for facts, row in (
        (replace(held, pull=PullState.MERGED), "merge-seen"),
        (replace(held, issue_open=False), "issue-closed"),
        (replace(held, blocked=True), "blocked"),
        (replace(held, given_back=True), "given-back"),
        (replace(held, phase=Phase.FAILED, write="w1"), "failed"),
    ):
        found = decide(facts).row
        assert found
        assert found.name == row


def test_it_holds_no_slot_once_its_turn_is_over() -> None:
    held = replace(
        NONE, allowance=limited(LimitStage.HELD), signs=Signs(doing="busy", active_at=NOW)
    )
    assert held.is_at_work
    assert not replace(held, signs=Signs(doing="idle", since=NOW)).is_at_work


# From a broken limit to its end


class Story:
    """The receipts of a session, and what is decided next."""

    def __init__(self, stage: LimitStage) -> None:
        self.facts = replace(NONE, allowance=limited(stage))
        self.receipts = [Receipt(NOW - HOUR, "start", "start", verb=StepVerb.START)]
        self.at = NOW
        self.does("busy")

    def does(self, doing: str) -> None:
        ended_at = self.at if doing == "idle" else None
        signs = Signs(doing=doing, since=self.at, active_at=self.at, ended_at=ended_at)
        self.facts = replace(self.facts, signs=signs)

    def limit(self, stage: LimitStage | None, matter: str = MATTER) -> None:
        allowance = Allowance(stage, matter, "as much") if stage else None
        resumed_at = self.facts.resumed_at if allowance and allowance.holds else self.at
        self.facts = replace(self.facts, allowance=allowance, resumed_at=resumed_at)

    @property
    def now(self) -> Facts:
        return replace(self.facts, now=self.at, history=fold(self.receipts))

    def asks(self) -> bool:
        """Whether a person is asked."""
        return self.now.escalated

    def goes_on(self, detail: str = "", after_s: float = 1.0) -> str:
        """What is done next; '' for nothing."""
        self.at += after_s
        facts = self.now
        decision = decide(facts)
        if decision.row is None or not decision.acts:
            return ""
        row, about = decision.row, decision.row.about(facts)
        common = {"plan": decision.key, "row": row.name, "write": about, "counts": row.counts}
        for number, step in enumerate(row.steps):
            said = detail or step.text
            self.receipts.append(
                Receipt(self.at, step=number, verb=step.verb, detail=said, **common)  # type: ignore[arg-type]
            )
        self.receipts.append(Receipt(self.at, step=len(row.steps), **common))  # type: ignore[arg-type]
        return row.name


def test_a_turn_is_interrupted_a_document_written_a_person_asked_and_it_goes_on() -> None:
    story = Story(LimitStage.OVER)
    assert story.goes_on(STOPPED) == "limit-stop"
    story.does("idle")
    assert story.goes_on("/wt/handoff-1.md") == "limit-handoff"
    story.facts = replace(
        story.facts, signs=Signs(doing="busy", since=story.at, active_at=story.at)
    )
    assert story.goes_on(after_s=30) == "", "its turn is granted"
    story.does("idle")
    assert story.goes_on() == "limit-asked"
    assert story.asks()
    assert find_waiting(story.now) is not None
    assert story.goes_on(after_s=5 * HOUR) == ""
    story.limit(LimitStage.FREE)
    assert story.now.history.halt == Halt(
        KEY, NOW + 1, stops=1, asked_at=NOW + 2, document="/wt/handoff-1.md"
    )
    assert story.goes_on() == "limit-over"
    story.does("busy")
    assert not story.now.halted
    assert not story.asks()
    assert story.goes_on() == ""


def test_the_same_limit_is_dealt_with_anew_once_it_was_over() -> None:
    story = Story(LimitStage.HELD)
    for _ in range(2):
        assert story.goes_on() == "limit-held"
        assert story.goes_on() == ""
        assert story.goes_on(after_s=PATIENCE_S) == "limit-held-long"
        assert story.goes_on(after_s=HOUR) == ""
        story.limit(None)
        assert story.goes_on() == "limit-gone"
        assert story.goes_on() == ""
        story.limit(LimitStage.HELD)


def test_a_window_that_ends_by_itself_is_no_question() -> None:
    story = Story(LimitStage.HELD)
    story.facts = replace(story.facts, allowance=limited(LimitStage.HELD, until=NOW + HOUR))
    assert story.goes_on() == "limit-held"
    assert story.goes_on(after_s=10 * PATIENCE_S) == ""
    assert decide(replace(story.now, signs=Signs(doing="idle"))).wake_at == NOW + HOUR


def test_the_reserve_ends_the_turn_for_the_document() -> None:
    story = Story(LimitStage.OVER)
    assert story.goes_on(STOPPED) == "limit-stop"
    story.does("idle")
    assert story.goes_on("/d.md") == "limit-handoff"
    story.facts = replace(
        story.facts, signs=Signs(doing="busy", since=story.at, active_at=story.at)
    )
    assert story.goes_on() == ""
    story.limit(LimitStage.SPENT)
    assert story.goes_on(STOPPED) == "limit-stop"
    story.does("idle")
    assert story.goes_on() == "limit-asked"


def test_a_turn_for_the_document_that_does_not_end_is_interrupted() -> None:
    story = Story(LimitStage.OVER)
    assert story.goes_on(STOPPED) == "limit-stop"
    story.does("idle")
    assert story.goes_on("/d.md") == "limit-handoff"
    story.facts = replace(
        story.facts, signs=Signs(doing="busy", since=story.at, active_at=story.at)
    )
    assert story.goes_on(after_s=WRITING_S) == "limit-stop"


def test_a_turn_that_begins_later_is_interrupted_each_time() -> None:
    story = Story(LimitStage.SPENT)
    assert story.goes_on(STOPPED) == "limit-stop"
    story.does("idle")
    assert story.goes_on() == "limit-asked"
    for _ in range(3):
        story.at += 60
        story.does("busy")
        assert story.goes_on(STOPPED) == "limit-stop"
        story.does("idle")
        assert story.goes_on() == ""


def test_turn_after_turn_over_a_limit_is_interrupted_and_a_person_is_told_of_it_once() -> None:
    story = Story(LimitStage.SPENT)
    told = []
    for _ in range(2 * STOPS):
        while row := story.goes_on(STOPPED):
            told += [row] * (row == "limit-runs-on")
        story.does("idle")
        story.at += 60
        assert story.goes_on() in ("limit-asked", "")
        assert tell_turn(story.now) == "the agent rests"
        story.does("busy")
        assert must_stop(story.now)
    assert story.now.history.halt
    assert story.now.history.halt.stops == 2 * STOPS
    assert told == ["limit-runs-on"]
    need = find_waiting(story.now)
    assert need
    assert need.row == "limit-runs-on"


def test_a_turn_that_cannot_be_interrupted_is_told_and_interrupted_on() -> None:
    story = Story(LimitStage.OVER)
    about = story.now.halted
    noted = Receipt(NOW, "d", "limit-stop", about, verb=StepVerb.INTERRUPT, detail=DEFIED)
    story.receipts.append(noted)
    assert story.goes_on() == "limit-runs-on"
    assert tell_turn(story.now) == "the agent is at work, and is being stopped"
    assert decide(story.now).row is LIMIT_STOP


def test_what_nobody_knows_for_a_moment_stops_nobody() -> None:
    story = Story(LimitStage.BLIND)
    story.facts = replace(story.facts, held_since=story.at)
    assert story.goes_on(after_s=BLIND_S / 2) == "limit-held"
    assert decide(story.now).wake_at == NOW + BLIND_S
    story.limit(LimitStage.FREE)
    assert story.goes_on() == "limit-gone"
    story.limit(LimitStage.BLIND)
    story.facts = replace(story.facts, held_since=story.at)
    assert story.goes_on() == "limit-held"
    assert story.goes_on(STOPPED, after_s=BLIND_S) == "limit-stop"
    story.does("idle")
    assert story.goes_on(after_s=PATIENCE_S) == "limit-held-long"
    story.limit(LimitStage.FREE)
    assert story.goes_on() == "limit-over", "it is told to go on"


@pytest.mark.parametrize(
    ("doing", "words"),
    [
        ("busy", "the agent is at work, and is being stopped"),
        ("waiting", "the agent is at work, and is being stopped"),
        ("idle", "the agent rests"),
        ("", "its hooks do not tell whether the agent is at work"),
    ],
)
def test_a_person_is_told_that_it_rests_only_when_its_turn_has_ended(
    doing: str, words: str
) -> None:
    signs = Signs(doing=doing, since=NOW - 1, active_at=NOW) if doing else None
    facts = replace(NONE, allowance=limited(LimitStage.OVER), signs=signs)
    asked = describe_need(Case("limit-asked", "shop#7", limit="as much", turn=tell_turn(facts)))
    assert asked.why == f"A budget is used up, and {words} (as much)"


def test_a_document_that_cannot_be_asked_for_holds_the_question_up_for_a_while_only() -> None:
    story = Story(LimitStage.OVER)
    assert story.goes_on(STOPPED) == "limit-stop"
    story.does("idle")
    assert decide(story.now).row is BY_NAME["limit-handoff"]
    assert story.goes_on(after_s=TYPING_S) == "limit-asked"


def test_a_turn_that_was_cut_off_while_it_was_paused_writes_its_document_afterwards() -> None:
    story = Story(LimitStage.OVER)
    assert decide(story.now, WHILE_PAUSED).row is BY_NAME["limit-stop"]
    assert story.goes_on(STOPPED) == "limit-stop"
    story.does("idle")
    assert not decide(story.now, WHILE_PAUSED).acts
    story.at += 2 * TYPING_S
    story.facts = replace(story.facts, resumed_at=story.at)
    assert story.goes_on("/wt/handoff-1.md") == "limit-handoff"


def test_no_time_counts_against_a_hold_while_it_is_paused() -> None:
    story = Story(LimitStage.HELD)
    story.does("idle")
    assert story.goes_on() == "limit-held"
    story.at += 2 * PATIENCE_S
    story.facts = replace(story.facts, resumed_at=story.at)
    assert story.goes_on() == ""
    assert story.goes_on(after_s=PATIENCE_S) == "limit-held-long"


def test_a_session_at_rest_has_nothing_to_write_down() -> None:
    story = Story(LimitStage.OVER)
    story.does("idle")
    assert story.goes_on() == "limit-asked"
    story.limit(LimitStage.NEAR)
    assert story.goes_on() == "limit-gone"


def test_another_limit_is_another_question() -> None:
    story = Story(LimitStage.OVER)
    story.does("idle")
    assert story.goes_on() == "limit-asked"
    story.limit(LimitStage.OVER, "day:5")
    assert story.goes_on() == "limit-asked"
    assert story.now.about == f"{LIMIT}day:5"


def test_an_answer_waits_for_the_raise_and_is_handed_over_then() -> None:
    story = Story(LimitStage.OVER)
    assert story.goes_on(STOPPED) == "limit-stop"
    story.does("idle")
    assert story.goes_on("/d.md") == "limit-handoff"
    story.at += BEGINS_S
    story.does("idle")
    assert story.goes_on() == "limit-asked"
    story.facts = replace(story.facts, reply="a1")
    assert story.goes_on() == ""
    story.limit(None)
    assert story.goes_on() == "reply"
    assert story.goes_on() == "limit-over"


def test_what_the_agent_was_told_of_a_near_limit_it_is_told_once() -> None:
    story = Story(LimitStage.NEAR)
    assert story.goes_on() == "limit-near"
    assert story.goes_on() == ""
    story.limit(LimitStage.OVER)
    assert story.goes_on(STOPPED) == "limit-stop"
    story.limit(LimitStage.NEAR)
    story.does("busy")
    assert story.goes_on() == "limit-over"
    assert story.goes_on() == ""


def test_an_agent_that_died_meanwhile_is_restarted_when_it_may_spend_again() -> None:
    story = Story(LimitStage.OVER)
    story.does("idle")
    story.facts = replace(story.facts, session=Life.GONE)
    assert story.goes_on() == "limit-asked"
    assert story.goes_on(after_s=HOUR) == ""
    story.limit(None)
    assert story.goes_on() == "recover"
    story.facts = replace(story.facts, session=Life.ALIVE)
    assert story.goes_on() == "limit-gone"


def test_receipts_without_limits_are_folded_as_before() -> None:
    plain = [Receipt(NOW, "k", "park", verb=StepVerb.PARK), Receipt(NOW, "k", "park", step=1)]
    assert fold(plain).halt is None
    assert Count("go-on") is Count.GO_ON
