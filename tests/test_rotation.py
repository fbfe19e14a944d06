"""The rotation's decisions: each step for itself, then random walks in which everything meets."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as walk

from sm.rotation import Act, Cause, Document, Step
from tests.rotationworld import World

WALKS = int(os.environ.get("SM_WALKS", "0"))
"""Walk so many times along new random paths; otherwise the same paths every time."""

SECTIONS = ("Next Steps",)


def heard(world: World, kind: str) -> list[tuple[int, str]]:
    return [(context, key) for context, key in world.agent.heard if key.startswith(kind)]


def test_a_handoff_waits_for_the_turns_end_then_clears_once_and_prompts_once() -> None:
    world = World()
    world.rotate(Cause.HANDOFF, "/f.md")
    world.run()
    assert world.record is not None
    assert world.record.step is Step.QUIET
    world.now += 5
    world.agent.idle_since = world.now
    world.run()
    assert world.outcome is not None
    assert world.outcome.act is Act.FINISH
    assert (world.clears, heard(world, "resume")) == (1, [(2, "resume1")])


def test_a_cycle_asks_waits_for_the_document_clears_prompts_and_looks_whether_it_goes_on() -> None:
    world = World()
    world.rotate(Cause.CYCLE)
    world.run()
    assert world.agent.heard == [(1, "ask1")]
    world.now += 60
    world.document = Document("/h.md", world.now)
    world.agent.idle_since = world.now + 1
    world.now += 1
    world.run()
    assert world.record is not None
    assert world.record.step is Step.VERIFY
    assert not world.record.holds
    world.now += 1
    world.agent.worked_at = world.now
    world.run()
    assert world.outcome is not None
    assert world.outcome.act is Act.FINISH


def test_an_agent_that_ends_its_turn_without_a_document_is_asked_at_once_but_only_twice() -> None:
    world = World()
    world.rotate(Cause.CYCLE)
    for asked in (1, 2):
        world.run()
        assert heard(world, "ask")[-1] == (1, f"ask{asked}")
        world.now += 2
        world.agent.idle_since = world.now
    world.run()
    assert world.outcome is not None
    assert world.outcome.act is Act.GIVE_UP
    assert "no document" in world.outcome.reason
    assert world.clears == 0


class Walk(RuleBasedStateMachine):
    """Whatever meets whatever: one prompt in a fresh context, or a person is told why not."""

    world = World()

    @initialize(codex=st.booleans())
    def begins(self, codex: bool) -> None:
        self.world = World(codex=codex)

    def went(self, what: str) -> None:
        note(f"{self.world.now:.0f} {what}: {self.world.record}")
        self.world.run()
        self.check()

    def check(self) -> None:
        world = self.world
        resumed = heard(world, "resume")
        fresh = [context for context, _ in resumed if context != world.old]
        assert len(fresh) <= 1, f"more than one prompt: {resumed}"
        assert world.codex or fresh == [context for context, _ in resumed], "in the old context"
        if world.outcome and world.outcome.act is Act.FINISH:
            assert len(fresh) == 1
        if world.outcome and world.outcome.act is Act.GIVE_UP:
            assert world.outcome.reason

    @rule(cause=st.sampled_from([Cause.CYCLE, Cause.COMMAND]))
    def a_cycle_begins(self, cause: Cause) -> None:
        self.world.rotate(cause)
        self.went(f"{cause}")

    @precondition(lambda self: self.world.agent.alive and self.world.agent.idle_since is None)
    @rule()
    def the_agent_hands_off(self) -> None:
        self.world.rotate(Cause.HANDOFF, "/own.md")
        self.went("sm handoff")

    @precondition(lambda self: self.world.agent.idle_since is None)
    @rule(missing=st.sampled_from([(), SECTIONS]), empty=st.booleans())
    def the_agent_writes(self, missing: tuple[str, ...], empty: bool) -> None:
        self.world.document = Document("/h.md", self.world.now, empty, missing)
        self.went("a document")

    @precondition(lambda self: self.world.agent.alive)
    @rule(background=st.booleans())
    def the_turn_ends(self, background: bool) -> None:
        agent, now = self.world.agent, self.world.now
        agent.worked_at = now
        agent.idle_since, agent.background_since = (None, now) if background else (now, None)
        self.went("the turn ends")

    @rule(seconds=st.sampled_from([0.5, 6.0, 31.0, 61.0, 301.0, 700.0, 2000.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds
        self.went("time passes")

    @precondition(lambda self: self.world.agent.alive)
    @rule()
    def a_compaction(self) -> None:
        self.world.agent.compacted_at = self.world.now
        self.world.agent.begun = "compact"
        self.went("a compaction")

    @precondition(lambda self: self.world.agent.alive)
    @rule()
    def the_client_dies(self) -> None:
        self.world.agent.alive = False
        self.went("its client dies")

    @precondition(lambda self: not self.world.agent.alive)
    @rule(resumed=st.booleans())
    def it_is_started_again(self, resumed: bool) -> None:
        if resumed:
            self.world.agent.alive = True
            self.world.agent.idle_since = None
            self.world.agent.begun = "resume"
        else:
            self.world.start_anew()
            self.world.agent.idle_since = None
        self.went("it is started again")

    @precondition(lambda self: self.world.agent.alive and not self.world.codex)
    @rule()
    def a_person_clears(self) -> None:
        self.world._new_context("clear")
        self.went("a person clears")

    @rule(on=st.booleans())
    def something_is_in_the_way(self, on: bool) -> None:
        self.world.obstacle = "a dialog is open" if on else ""
        self.went("something in the way")

    @rule(swallows=st.booleans(), deaf=st.booleans())
    def the_client_misbehaves(self, swallows: bool, deaf: bool) -> None:
        self.world.swallows_clear, self.world.deaf = swallows, deaf
        self.went("the client misbehaves")

    @rule(readable=st.booleans(), gone=st.booleans())
    def the_document_changes(self, readable: bool, gone: bool) -> None:
        self.world.readable = readable
        if gone:
            self.world.document = None
        self.went("the document changes")

    @rule(parked=st.booleans())
    def the_api_is_down(self, parked: bool) -> None:
        self.world.parked = parked
        self.went("the api")

    @rule(steps=st.integers(0, 6))
    def the_executor_is_killed(self, steps: int) -> None:
        self.world.die_in = steps
        self.world.run()
        self.world.die_in = None
        self.check()

    def teardown(self) -> None:
        """Left alone, with an agent that ends its turns, it comes to an end."""
        world = self.world
        world.obstacle, world.parked, world.deaf = "", False, False
        for _ in range(40):
            if world.record is None:
                return
            if not world.agent.alive:
                world.start_anew()
            until = world.run()
            self.check()
            world.now += 1
            world.agent.worked_at = world.agent.idle_since = world.now
            world.agent.background_since = None
            world.run()
            self.check()
            world.step(min(until, world.now + 2000))
        raise AssertionError(f"never ends: {world.record}")


def test_the_agent_ends_with_one_prompt_in_a_fresh_context_or_a_person_knows() -> None:
    walk(
        Walk,
        settings=settings(
            max_examples=WALKS or 300,
            stateful_step_count=25,
            deadline=None,
            derandomize=not WALKS,
            suppress_health_check=list(HealthCheck),
        ),
    )
