"""Random walks through the reaction matrix, with real receipts folded into the real history."""

from __future__ import annotations

import math
from functools import partial

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from sm.adapters.forge.model import CheckState, Hold, PullState, ReviewState
from sm.base.phase import Phase
from sm.issues.rules.decide import Decision
from sm.issues.rules.decision_input import Policy
from sm.issues.rules.facts import REMINDERS, Facts
from sm.sessions.failure import FailureCause
from sm.sessions.history import StepVerb
from tests.chance import walks
from tests.policy import POLICY
from tests.world import World

TIMER_LIMIT = 80
"""So many timers end any session that is left to itself."""

MINUTE, HOUR = 60.0, 3600.0
GAPS_S = st.one_of(
    st.sampled_from([0.001, 1.0, 29.0, 31.0, 31 * MINUTE, 3 * HOUR, 6 * HOUR, 25 * HOUR, 1e7]),
    st.floats(0.001, 100 * HOUR),
)
POLICIES = st.builds(
    partial(replace, POLICY),
    max_fixes=st.sampled_from([0, 1, 3]),
    max_rounds=st.sampled_from([0, 1, 5]),
    max_recoveries=st.sampled_from([0, 1, 3]),
    review_required=st.booleans(),
    merge_by_sm=st.booleans(),
    first_for_s=st.sampled_from([1.0, 600.0]),
    repeats_ci=st.booleans(),
    remind_s=st.sampled_from([0.0, HOUR, 6 * HOUR]),
    merge_remind_s=st.sampled_from([1.0, 1800.0, 5 * HOUR]),
    recovery_pause_s=st.sampled_from([0.0, 30.0, 4 * HOUR]),
)
WORDS = [
    *(Phase.AWAITING_CI, Phase.AWAITING_REVIEW, Phase.AWAITING_REVIEW, Phase.ESCALATE),
    *(Phase.DONE, Phase.UNKNOWN, Phase.FAILED),
]
REFUSABLE = [
    *(
        StepVerb.OPEN_PULL,
        StepVerb.MERGE,
        StepVerb.INJECT,
        StepVerb.NOTIFY,
        StepVerb.REMIND,
        StepVerb.RECOVER,
    ),
    *(StepVerb.WRITE_CI_RESULT, StepVerb.LABEL_BLOCKED, StepVerb.CONSULT),
]
STEPS = [v for v in StepVerb if v is not StepVerb.START]


class Walk(RuleBasedStateMachine):
    """Whatever agents, people, forge and clock do: the session is answered, asked for, or ended."""

    world = World()
    failed = ended = False

    @initialize(policy=POLICIES, has_ci=st.booleans(), hooks=st.booleans())
    def begins(self, policy: Policy, has_ci: bool, hooks: bool) -> None:
        self.world = World(policy, has_ci, hooks)
        self.happened("the agent is started")

    @precondition(lambda self: self.world.alive)
    @rule(phase=st.sampled_from(WORDS))
    def agent_writes(self, phase: Phase) -> None:
        self.world.write(phase)
        self.happened(f"the agent writes {phase}")

    @precondition(lambda self: self.world.alive)
    @rule()
    def agent_gets_as_far_as_the_review(self) -> None:
        self.agent_commits(pushes=True, signals=True)
        if self.world.pull is PullState.OPEN and self.world.has_ci:
            self.ci_says(CheckState.SUCCESS)
        self.agent_writes(Phase.AWAITING_REVIEW)

    @precondition(lambda self: self.world.alive and self.world.pull is PullState.OPEN)
    @rule(early=st.booleans())
    def another_round_of_review(self, early: bool) -> None:
        self.reviewer_says(ReviewState.CHANGES_REQUESTED)
        self.agent_writes(Phase.AWAITING_REVIEW)
        if early:
            self.agent_writes(Phase.AWAITING_REVIEW)

    @precondition(lambda self: self.world.alive and self.world.pull is PullState.OPEN)
    @rule()
    def another_failure_of_ci(self) -> None:
        self.agent_commits(pushes=True, signals=True)
        self.ci_says(CheckState.FAILURE)

    @precondition(lambda self: self.world.alive)
    @rule(pushes=st.booleans(), signals=st.booleans())
    def agent_commits(self, pushes: bool, signals: bool) -> None:
        self.world.commits += 1
        if pushes:
            self.world.push()
        if signals:
            self.world.write(Phase.AWAITING_CI)
        self.happened(f"the agent commits, {pushes=}, {signals=}")

    @precondition(lambda self: self.world.alive)
    @rule()
    def agent_returns_to_its_prompt(self) -> None:
        self.world.turns("idle")
        self.happened("the agent's turn ends")

    @precondition(lambda self: self.world.alive and self.world.hooks)
    @rule(doing=st.sampled_from(["busy", "waiting", "dialog"]))
    def hooks_tell(self, doing: str) -> None:
        self.world.turns(doing)
        self.happened(f"the agent is {doing}")

    @precondition(lambda self: self.world.alive and self.world.hooks)
    @rule(
        fault=st.sampled_from(FailureCause),
        wait_s=st.sampled_from([60.0, 1800.0, 5 * HOUR, 170 * HOUR]),
        times=st.sampled_from([1, 1, 1, 2, 12]),
    )
    def turn_fails(self, fault: FailureCause, wait_s: float, times: int) -> None:
        for _ in range(times):
            if self.world.alive:
                self.world.fails(fault, wait_s)
                self.happened(f"the turn fails: {fault}")

    @rule()
    def agent_dies(self) -> None:
        self.world.alive = False
        self.happened("the agent dies")

    @rule()
    def phase_file_is_lost(self) -> None:
        self.world.lost, self.world.restarts = True, 0
        self.happened("the phase file is lost")

    @rule(unreadable=st.booleans())
    def phase_file_is_a_link(self, unreadable: bool) -> None:
        self.world.unreadable, self.world.restarts = unreadable, 0
        self.happened(f"the phase file is a link: {unreadable}")

    @precondition(lambda self: self.world.pull is PullState.OPEN and self.world.has_ci)
    @rule(verdict=st.sampled_from([state for state in CheckState if state is not CheckState.NONE]))
    def ci_says(self, verdict: CheckState) -> None:
        self.world.check, self.world.check_at = verdict, self.world.now
        self.happened(f"CI says {verdict}")

    @precondition(lambda self: self.world.pull is PullState.OPEN)
    @rule(verdict=st.sampled_from([ReviewState.APPROVED, ReviewState.CHANGES_REQUESTED]))
    def reviewer_says(self, verdict: ReviewState) -> None:
        self.world.review, self.world.reviews = verdict, self.world.reviews + 1
        self.happened(f"a reviewer says {verdict}")

    @precondition(lambda self: self.world.pull is PullState.OPEN)
    @rule(hold=st.sampled_from(Hold))
    def forge_holds_it(self, hold: Hold) -> None:
        self.world.hold = hold
        self.happened(f"the forge holds it: '{hold}'")

    @rule(conflicts=st.booleans())
    def base_moves(self, conflicts: bool) -> None:
        self.world.conflicts = conflicts
        self.happened(f"the base moves, {conflicts=}")

    @precondition(lambda self: self.world.pull is PullState.OPEN)
    @rule()
    def pull_request_is_merged(self) -> None:
        self.world.pull = PullState.MERGED
        self.happened("the pull request is merged")

    @rule(how=st.sampled_from(["closes the issue", "closes the pull request", "sets the label"]))
    def person_settles_it(self, how: str) -> None:
        if how == "closes the pull request" and self.world.pull is PullState.OPEN:
            self.world.pull = PullState.CLOSED
        self.world.issue_open = how != "closes the issue"
        self.world.blocked = how == "sets the label"
        self.happened(f"a person {how}")

    @rule()
    def person_answers(self) -> None:
        self.world.now += 0.5
        self.world.replies.append(self.world.now)
        self.happened("a person answers")

    @rule(there=st.booleans())
    def session_asked_before_people_begins_or_ends(self, there: bool) -> None:
        self.world.first = there
        self.happened(f"the session that is asked before people is there: {there}")

    @rule(seconds=GAPS_S)
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds
        self.happened(f"{seconds:g} s pass")

    @rule()
    def next_timer_rings(self) -> None:
        self.ring()

    @rule(verbs=st.sets(st.sampled_from(REFUSABLE), max_size=2))
    def something_is_refused_from_now_on(self, verbs: set[StepVerb]) -> None:
        self.world.refused = verbs
        self.world.tell(f"from now on refused: {sorted(verbs)}")

    @rule(verb=st.sampled_from(STEPS))
    def reactor_will_be_killed(self, verb: StepVerb) -> None:
        self.world.killed_before = verb

    @rule(verb=st.sampled_from([StepVerb.INJECT, StepVerb.NOTIFY, StepVerb.WRITE_CI_RESULT]))
    def agent_dies_under_a_killed_reactor(self, verb: StepVerb) -> None:
        self.world.killed_before = verb
        self.happened("the reactor has a look")
        self.world.killed_before = None
        self.world.alive = False
        self.happened("the agent dies")

    def happened(self, what: str) -> Decision:
        """React to it, and hold the outcome against what must always be true.

        Where that ended the session, another one begins.
        """
        self.world.tell(what)
        try:
            decision = self.world.react()
            if not self.world.plan and not self.world.forgotten:
                at_rest(self.world.facts(), decision)
            always(self.world)
        except AssertionError:
            note("\n".join(self.world.story))
            self.failed = True
            raise
        self.ended = self.world.forgotten
        if self.ended:
            self.world = World(self.world.policy, self.world.has_ci, self.world.hooks)
        return decision

    def ring(self) -> None:
        decision = self.happened("the monitor looks")
        if self.world.plan:
            self.world.now += MINUTE
        elif not self.ended:
            self.world.now = decision.wake_at
            self.happened("a timer rings")

    def teardown(self) -> None:
        """Left to itself, every session comes to its end."""
        self.world.killed_before, self.ended = None, False
        self.world.tell("from here on nobody moves")
        for _ in range(TIMER_LIMIT):
            if self.failed or self.ended:
                return
            self.ring()
        note("\n".join(self.world.story))
        raise AssertionError(f"{TIMER_LIMIT} timers rang and the session was still there")


def always(world: World) -> None:
    """What holds at every moment."""
    twice = [key for key, count in world.done.items() if count > 1]
    assert not twice, f"done twice: {twice}"
    assert world.reminded <= REMINDERS, "reminded again and again"
    assert world.restarts <= world.policy.max_recoveries, "restarted again and again"


def at_rest(facts: Facts, decision: Decision) -> None:
    """What holds when sm has nothing left to do until something happens or a timer rings."""
    assert math.isfinite(decision.wake_at), "no timer ahead"
    assert decision.wake_at > facts.now, "no timer ahead"
    only = facts.escalation is not None and bool(facts.escalation.first)
    assert not only or facts.asks_first or facts.crashed, "people are not asked, and nobody is"
    if facts.crashed:
        patience_until = facts.pause_until
    elif facts.escalated:
        patience_until = facts.asked_at + facts.policy.escalation_timeout_s
    elif facts.parked and facts.failure:
        patience_until = facts.failure.until
    elif facts.dialog_at is not None:
        patience_until = facts.dialog_due_at
    elif facts.open:
        patience_until = {
            Phase.AWAITING_CI: max(facts.ci_due_at, facts.rerun_until),
            Phase.AWAITING_REVIEW: facts.written_at + facts.policy.review_timeout_s,
            Phase.DONE: facts.merge_held_until,
        }.get(facts.phase, facts.written_at)
    else:
        patience_until = facts.life_at + facts.policy.agent_timeout_s
    assert decision.wake_at <= patience_until, "somebody waits for too long"


@pytest.mark.hypothesis
def test_no_walk_loops_repeats_itself_or_leaves_a_session_waiting_for_ever() -> None:
    run_state_machine_as_test(Walk, settings=walks(120, steps=30))
