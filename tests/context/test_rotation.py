"""The rotation's decisions: each step for itself, then random walks in which everything meets."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as walk
from msgspec import structs

from sm.context.decide import decide
from sm.context.rotation import (
    Cause,
    HandoffDocument,
    MessageKey,
    MessageKind,
    Move,
    RotationAct,
    RotationStage,
    begin,
)
from tests.chance import walks
from tests.rotationworld import World

SECTIONS = ("Next Steps",)


def heard(world: World, kind: str) -> list[tuple[int, str]]:
    return [(context, key) for context, key in world.agent.heard if key.startswith(kind)]


def test_a_handoff_waits_for_the_turns_end_then_clears_once_and_prompts_once() -> None:
    world = World()
    world.rotate(Cause.HANDOFF, "/f.md")
    world.run()
    assert world.record is not None
    assert world.record.step is RotationStage.QUIET
    world.now += 5
    world.agent.idle_since = world.now
    world.run()
    assert world.outcome is not None
    assert world.outcome.act is RotationAct.FINISH
    assert (world.clears, heard(world, "resume")) == (1, [(2, "resume1")])


def test_a_cycle_asks_waits_for_the_document_clears_prompts_and_looks_whether_it_goes_on() -> None:
    world = World()
    world.rotate(Cause.CYCLE)
    world.run()
    assert world.agent.heard == [(1, "ask1")]
    world.now += 60
    world.document = HandoffDocument("/h.md", f"{world.now}", world.now)
    world.agent.idle_since = world.now + 1
    world.now += 1
    world.run()
    assert world.record is not None
    assert world.record.step is RotationStage.VERIFY
    world.now += 1
    world.agent.worked_at = world.now
    world.run()
    assert acts(world).act is RotationAct.WAIT, "that it works does not show what it works on"
    world.agent.task = "the next step"
    world.run()
    assert named(world) == "the next step"


def test_one_that_leaves_writes_its_document_and_then_nothing_reaches_its_context() -> None:
    world = World()
    world.rotate(Cause.LEAVE)
    world.run()
    assert world.agent.heard == [(1, "ask1")]
    world.now += 60
    world.document = HandoffDocument("/h.md", f"{world.now}", world.now)
    world.agent.idle_since = world.now + 1
    world.now += 1
    world.run()
    assert world.record is not None
    assert (world.record.step, world.record.document) == (RotationStage.CLEAR, "/h.md")
    assert world.record.holds, "no message begins another turn"
    world.now += 10_000
    world.run()
    world.agent.context += 1  # its agent was started anew
    world.run()
    assert (world.clears, world.outcome, heard(world, "resume")) == (0, None, [])


def test_an_agent_that_ends_its_turns_without_a_document_is_asked_twice_within_five_minutes() -> (
    None
):
    world = World()
    world.rotate(Cause.CYCLE)
    world.run()
    begun_at = world.now
    for asked, share_s in ((1, 150), (2, 300)):
        assert heard(world, "ask")[-1] == (1, f"ask{asked}")
        world.now += 2
        world.agent.idle_since = world.now
        world.run()
        assert world.record is not None
        assert not world.record.holds, "what waits may reach it until it is asked again"
        world.now = begun_at + share_s - 1
        world.run()
        assert heard(world, "ask")[-1] == (1, f"ask{asked}")
        world.now += 1
        world.run()
    assert "no document" in given_up(world)
    assert world.clears == 0


def test_with_three_requests_the_third_is_told_confirmed_and_taken_back_like_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sm.context.decide.REQUESTS", 3)
    world = World()
    world.rotate(Cause.CYCLE)
    world.run()
    begun_at = world.now
    for asked in (1, 2, 3):
        assert heard(world, "ask")[-1] == (1, f"ask{asked}")
        assert world.record is not None
        assert MessageKey(MessageKind.ASK, asked) in world.record.list_keys()
        world.now += 2
        world.agent.idle_since = world.now
        world.run()
        world.now = begun_at + asked * 100
        world.run()
    assert given_up(world) == "it has written no document, asked 3 times"


def test_a_third_request_that_waits_is_taken_back_when_the_document_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sm.context.decide.REQUESTS", 3)
    world = World()
    world.rotate(Cause.CYCLE)
    for asked in (1, 2):
        world.run()
        world.now += 2
        world.agent.idle_since = world.now
        world.run()
        world.obstacle = "a dialog" if asked == 2 else ""
        world.now += 100
    world.run()
    assert world.messages[MessageKey(MessageKind.ASK, 3)] == "waiting"
    world.rotate(Cause.HANDOFF, "/f.md")
    world.run()
    assert MessageKey(MessageKind.ASK, 3) not in world.messages


def test_the_ids_of_its_messages_are_those_that_were_always_made() -> None:
    record = structs.replace(begin("r1", Cause.CYCLE, 0, "c1"), requests=2)
    words = [str(key) for key in record.list_keys()]
    assert words == ["ask1", "ask2", "sections", "resume1", "resume2", "confirm1", "confirm2"]
    for key in record.list_keys():
        digest = hashlib.sha256(f"r1:{key}".encode()).hexdigest()
        assert record.make_message_id(key) == digest[:16]
    assert record.make_message_id(MessageKey(MessageKind.ASK)) == "2834005e3703d833"


def test_a_document_that_comes_between_the_two_requests_is_taken() -> None:
    world = World()
    world.rotate(Cause.CYCLE)
    world.run()
    world.now += 2
    world.agent.idle_since = world.now
    world.run()
    world.now += 60
    world.document = HandoffDocument("/h.md", f"{world.now}", world.now)
    world.run()
    assert heard(world, "ask") == [(1, "ask1")]
    assert world.clears == 1


def rotated(world: World, at: RotationStage, **changes: object) -> World:
    """Put the world into a step of a cycle whose document is written."""
    record = begin("r", Cause.CYCLE, world.now, str(world.agent.context), "/h.md")
    world.old = world.agent.context
    world._save(structs.replace(record, step=at, **changes))
    return world


def given_up(world: World) -> str:
    """Why, '' where it was not."""
    move = world.outcome
    return move.reason if move and move.act is RotationAct.GIVE_UP else ""


def named(world: World) -> str | None:
    """The task with which it has finished, None where it has not."""
    move = world.outcome
    return move.record.task if move and move.act is RotationAct.FINISH else None


def acts(world: World) -> Move:
    assert world.record is not None
    return decide(world.record, world.seen(), world.limits)


def test_an_agent_that_does_not_go_on_is_asked_after_a_minute_and_given_up_after_ten() -> None:
    world = rotated(World(), RotationStage.RESUME)
    world.agent.context = 2
    world.agent.idle_since = world.now
    world.run()
    world.now += 59
    world.run()
    assert heard(world, "confirm") == []
    world.now += 2
    world.run()
    assert [key for _, key in heard(world, "confirm")] == ["confirm1"]
    world.now += 599
    world.run()
    assert given_up(world) == ""
    world.now += 2
    world.run()
    assert given_up(world) == "nothing shows that it goes on"


def resumed(**changes: Any) -> World:
    """A cycle whose new context has got its prompt, and is at work."""
    world = rotated(World(**changes), RotationStage.RESUME)
    world.agent.context = 2
    world.agent.idle_since = world.now
    world.run()
    return world


def end_turn(world: World) -> None:
    """The agent ends its turn, and all that it said in it is written down."""
    world.now += 1
    world.agent.worked_at = world.agent.idle_since = world.now
    world.run()
    world.now += world.limits.written_s
    world.run()


def test_a_new_context_that_names_its_task_is_left_alone() -> None:
    world = resumed(proves=True, names=True)
    world.run()
    assert named(world) == "the next step"
    assert heard(world, "confirm") == []


@pytest.mark.parametrize("proves", [True, False])
def test_messages_wait_until_the_new_context_has_named_its_task(proves: bool) -> None:
    """Without a transcript another message was typed 0.2 s behind the resume prompt."""
    world = resumed(proves=proves)
    assert world.record is not None
    assert world.record.holds


def test_messages_wait_for_two_minutes_at_most_where_nothing_can_be_read() -> None:
    world = resumed()
    world.now += world.limits.verify_s
    assert world.record is not None
    asked = decide(world.record, world.seen(), world.limits)
    assert (asked.act, asked.record.asked, asked.record.holds) == (RotationAct.TELL, True, True)
    world.now += world.limits.verify_s
    unheard = decide(asked.record, world.seen(), world.limits)
    assert (unheard.act, unheard.record.holds) == (RotationAct.TELL, False)


def test_an_ended_turn_without_a_task_is_asked_for_it_once_all_of_it_is_written_down() -> None:
    world = resumed(proves=True)
    world.now += 1
    world.agent.idle_since = world.agent.worked_at = world.now
    world.run()
    world.now += world.limits.written_s - 1
    world.run()
    assert heard(world, "confirm") == []
    world.now += 1
    world.run()
    assert [key for _, key in heard(world, "confirm")] == ["confirm1"]


def test_a_context_that_names_no_task_is_replaced_once_more_and_then_a_person_is_told() -> None:
    world = resumed(proves=True)
    for _ in range(4):
        end_turn(world)
    told = [(2, "resume1"), (2, "confirm1"), (3, "resume2"), (3, "confirm2")]
    assert world.agent.heard == told
    assert world.clears == 1
    assert given_up(world) == "it has not named the task that it goes on with"
    assert world.outcome is not None
    assert world.outcome.record.went_on


def test_the_second_context_may_name_the_task() -> None:
    world = resumed(proves=True)
    world.names = False
    end_turn(world)
    end_turn(world)
    assert world.agent.context == 3
    world.agent.task = "the next step"
    world.run()
    assert named(world) == "the next step"


def test_a_context_that_cannot_be_read_is_never_replaced_once_more() -> None:
    world = resumed()
    end_turn(world)
    end_turn(world)
    assert named(world) == ""
    assert world.clears == 0


def test_a_context_that_a_person_has_told_something_is_not_replaced_once_more() -> None:
    world = resumed(proves=True)
    end_turn(world)
    world.agent.others = True
    end_turn(world)
    assert given_up(world) == "it has not named the task that it goes on with"
    assert world.clears == 0


def test_a_context_that_begins_to_work_before_the_second_clear_is_left_alone() -> None:
    world = resumed(proves=True)
    end_turn(world)
    world.obstacle = "copy mode"
    end_turn(world)
    assert world.record is not None
    assert (world.record.step, world.record.again) == (RotationStage.CLEAR, True)
    world.obstacle, world.agent.others = "", True
    world.run()
    assert given_up(world) == "it has not named the task that it goes on with"
    assert world.clears == 0


def test_an_agent_at_work_that_names_no_task_gets_its_messages_and_keeps_its_context() -> None:
    world = resumed(proves=True)
    world.now += world.limits.verify_s
    world.run()
    assert [key for _, key in heard(world, "confirm")] == ["confirm1"]
    assert world.record is not None
    assert world.record.holds
    world.now += world.limits.verify_s
    world.run()
    assert not acts(world).record.holds
    end_turn(world)
    assert world.clears == 0
    assert given_up(world) == "it has not named the task that it goes on with"


def test_an_agent_that_hands_off_in_its_new_context_goes_on() -> None:
    world = resumed(proves=True)
    assert world.record is not None
    seen = structs.replace(world.seen(), hands_off=True)
    assert decide(world.record, seen, world.limits).act is RotationAct.FINISH


def test_an_agent_at_work_has_five_minutes_for_its_document() -> None:
    world = World()
    world.rotate(Cause.CYCLE)
    world.run()
    world.now += 299
    world.run()
    assert heard(world, "ask") == [(1, "ask1")]
    world.now += 2
    world.run()
    assert heard(world, "ask") == [(1, "ask1"), (1, "ask2")]
    world.now += 301
    world.run()
    assert world.outcome is not None
    assert world.outcome.act is RotationAct.GIVE_UP


def test_an_agent_has_the_whole_time_for_its_document_again_when_a_pause_is_over() -> None:
    world = World()
    world.rotate(Cause.CYCLE)
    world.run()
    world.now += 3600
    world.resumed_at = world.now
    world.run()
    assert heard(world, "ask") == [(1, "ask1")]
    world.now += 299
    world.run()
    assert heard(world, "ask") == [(1, "ask1")]
    world.now += 2
    world.run()
    assert heard(world, "ask") == [(1, "ask1"), (1, "ask2")]


def test_a_new_context_has_the_whole_time_to_name_its_task_again_when_a_pause_is_over() -> None:
    world = rotated(World(proves=True), RotationStage.VERIFY)
    world.now += 3600
    world.resumed_at = world.now
    world.run()
    assert heard(world, "confirm") == []
    world.now += 61
    world.run()
    assert [key for _, key in heard(world, "confirm")] == ["confirm1"]


def test_only_a_context_that_may_be_cleared_and_has_no_task_yet_must_go_on_while_paused() -> None:
    record = begin("r", Cause.CYCLE, 0.0, "1")
    late = structs.replace(record, step=RotationStage.CLEAR, clears=1)
    expected = {
        RotationStage.REQUEST: record,
        RotationStage.DOCUMENT: structs.replace(record, step=RotationStage.DOCUMENT),
        RotationStage.QUIET: structs.replace(record, step=RotationStage.QUIET, clears=2),
        RotationStage.VERIFY: structs.replace(record, step=RotationStage.VERIFY),
        "not tried": structs.replace(record, step=RotationStage.CLEAR),
        "in the way": structs.replace(late, tried=1, obstacle="draft"),
    }
    assert not [name for name, one in expected.items() if one.must_go_on]
    going = {
        "tried": structs.replace(late, tried=1),
        "tried again": structs.replace(late, tried=2, obstacle="draft"),
        "started anew": structs.replace(late, relaunched=True),
        RotationStage.RESUME: structs.replace(record, step=RotationStage.RESUME),
    }
    assert [name for name, one in going.items() if one.must_go_on] == list(going)


def test_a_prompt_that_is_lost_is_told_once_more() -> None:
    world = rotated(World(deaf=True), RotationStage.RESUME)
    world.agent.context = 2
    world.agent.idle_since = world.now
    world.run()
    assert world.outcome is not None
    assert world.outcome.act is RotationAct.GIVE_UP
    assert world.told == ["resume1", "resume2"]


def test_a_document_from_the_future_comes_to_rest_until_it_is_written_again() -> None:
    world = World()
    world.rotate(Cause.CYCLE)
    world.run()
    world.document = HandoffDocument("/h.md", "one", world.now + 3600)
    world.run()
    for stamp in ("one", "two"):
        world.now += world.limits.settled_s - 1
        world.document = HandoffDocument("/h.md", stamp, world.now + 3600)
        world.run()
        assert world.record is not None
        assert world.record.step is RotationStage.DOCUMENT
    world.now += world.limits.settled_s
    world.run()
    assert world.record
    assert world.record.step is RotationStage.QUIET


def test_a_turn_that_goes_on_behind_its_document_is_interrupted_after_a_minute() -> None:
    world = rotated(World(), RotationStage.QUIET)
    world.now += 59
    assert acts(world).act is RotationAct.WAIT
    world.now += 2
    world.run()
    assert world.clears == 1


def test_an_interruption_that_cannot_be_is_tried_again_and_told_of() -> None:
    world = rotated(World(obstacle="copy mode"), RotationStage.QUIET)
    world.now += 61
    world.run()
    assert acts(world).act is RotationAct.INTERRUPT
    world.now += 600
    world.run()
    assert world.reports == ["its turn goes on, and cannot be interrupted"]
    world.obstacle = ""
    world.run()
    assert world.clears == 1


def test_tasks_in_the_background_are_waited_for_ten_minutes_and_no_longer() -> None:
    world = rotated(World(), RotationStage.QUIET)
    world.agent.background_since = world.now
    world.now += 599
    world.run()
    assert world.clears == 0
    world.now += 2
    world.run()
    assert world.clears == 1


@pytest.mark.parametrize("on_record", ["draft", "a person has half a line typed there"])
def test_what_is_in_the_way_of_a_clear_is_told_in_a_sentence(on_record: str) -> None:
    """On record is its code, and in the record of an older version the sentence itself."""
    world = rotated(World(), RotationStage.CLEAR)
    world.obstacle = on_record
    world.run()
    world.now += 601
    world.run()
    assert world.reports == ["a person has half a line typed there"]


def test_a_wish_whose_end_no_hook_tells_is_looked_at_again() -> None:
    world = World()
    world.rotate(Cause.HANDOFF, "/f.md")
    assert acts(world).until <= world.now + 60


def test_an_api_without_answers_uses_no_request_up_and_lets_messages_through() -> None:
    world = World()
    world.rotate(Cause.CYCLE)
    world.parked = True
    for _ in range(10):
        world.now += 1000
        world.run()
    assert world.record is not None
    assert (world.record.step, world.record.holds) == (RotationStage.REQUEST, False)
    world.parked = False
    world.run()
    assert heard(world, "ask") == [(1, "ask1")]
    assert world.record.holds


def test_what_was_asked_is_not_asked_any_more_once_it_is_over() -> None:
    world = World(obstacle="copy mode")
    world.rotate(Cause.CYCLE)
    world.run()
    world._new_context("clear")
    world.run()
    assert world.outcome is not None
    world.obstacle = ""
    world.deliver()
    assert world.agent.heard == []


def test_a_clear_that_a_client_swallows_silently_is_typed_anew() -> None:
    world = rotated(World(codex=True, swallows_clear=True), RotationStage.QUIET)
    world.agent.idle_since = world.now
    world.run()
    world.swallows_clear = False
    world.now += 10
    world.agent.idle_since = world.now
    world.run()
    assert world.clears == 1
    assert [context for context, _ in heard(world, "resume")][-1] == 2


def test_nobody_who_could_start_the_agent_anew_counts_as_no_failure() -> None:
    world = rotated(World(), RotationStage.CLEAR, tried=2, clears=2, relaunched=True)
    world.agent.idle_since = world.now
    world.now += 1000
    assert acts(world).act is RotationAct.RELAUNCH


def test_an_agent_that_cannot_be_started_anew_is_given_up_in_the_end() -> None:
    world = rotated(World(swallows_clear=True, fails_to_start=True), RotationStage.QUIET)
    for _ in range(40):
        if world.record is None:
            break
        world.agent.idle_since = world.now
        world.run()
        world.now += 30
    assert world.outcome is not None
    assert world.outcome.reason == "its context could not be cleared"


def test_the_last_wish_counts_as_long_as_the_context_is_there() -> None:
    world = rotated(World(obstacle="copy mode"), RotationStage.QUIET)
    world.agent.idle_since = world.now
    world.run()
    world.rotate(Cause.HANDOFF, "/later.md")
    assert world.record is not None
    assert (world.record.step, world.record.document) == (RotationStage.CLEAR, "/later.md")


def test_a_context_that_a_person_clears_is_not_asked_to_confirm() -> None:
    world = rotated(World(), RotationStage.RESUME)
    world.agent.context = 2
    world.agent.idle_since = world.now
    world.run()
    world._new_context("clear")
    world.now += 61
    world.run()
    assert heard(world, "confirm") == []
    assert world.outcome is not None
    assert world.outcome.reason == "a person has cleared its new context"


def test_an_agent_that_dies_before_it_goes_on_is_told_again_in_the_next_context() -> None:
    world = rotated(World(), RotationStage.RESUME)
    world.agent.context = 2
    world.agent.idle_since = world.now
    world.run()
    world.start_anew()
    world.run()
    assert heard(world, "resume") == [(2, "resume1"), (3, "resume2")]


def test_a_context_without_a_name_takes_that_of_the_one_that_was_there_already() -> None:
    world = World()
    world.rotate(Cause.HANDOFF, "/f.md")
    assert world.record is not None
    world.record = structs.replace(world.record, context="")
    world.run()
    assert world.record is not None
    assert (world.record.step, world.record.context) == (RotationStage.QUIET, "1")


def started_anew(world: World) -> World:
    """The client has died, and the next one has not told of its context yet, as Codex does."""
    world.agent.alive = False
    world.run()
    world.start_anew()
    world.run()
    return world


def test_a_context_without_a_name_is_named_by_the_first_prompt_of_its_launch() -> None:
    world = started_anew(World(codex=True))
    world.rotate(Cause.COMMAND)
    world.run()
    world.now += 5
    world.run()
    assert world.agent.heard == [(2, "ask1")]
    assert world.record is not None
    assert (world.record.step, world.record.context) == (RotationStage.DOCUMENT, "2")


def test_an_agent_that_dies_before_its_context_has_a_name_is_asked_nothing_in_the_next() -> None:
    world = started_anew(World(codex=True))
    world.obstacle = "copy mode"
    world.rotate(Cause.CYCLE)
    started_anew(world)
    assert world.agent.heard == []
    assert given_up(world) == "its agent was started anew before it had written a document"


def test_what_was_handed_off_in_a_context_without_a_name_is_told_once_in_the_next() -> None:
    world = started_anew(World(codex=True))
    world.rotate(Cause.HANDOFF, "/own.md")
    started_anew(world)
    assert world.agent.heard == [(3, "resume1")]
    assert world.outcome is not None
    assert (world.outcome.act, world.clears) == (RotationAct.FINISH, 0)


def test_a_new_start_that_does_not_tell_of_its_context_gets_its_prompt_after_a_minute() -> None:
    world = started_anew(resumed(codex=True))
    world.agent.idle_since = world.now
    world.now += world.limits.relaunch_s - 1
    world.run()
    assert heard(world, "resume") == [(2, "resume1")]
    world.now += 1
    world.run()
    assert world.agent.heard == [(2, "resume1"), (3, "resume2")]


def test_a_new_start_that_has_resumed_its_context_is_not_told_again() -> None:
    world = resumed(codex=True)
    world.agent.alive = False
    world.run()
    world.resume()
    world.agent.silent = True
    world.run()
    world.agent.silent = False
    world.now += world.limits.verify_s
    world.run()
    assert [key for _, key in world.agent.heard] == ["resume1", "confirm1"]


@pytest.mark.parametrize(
    "step", [RotationStage.DOCUMENT, RotationStage.QUIET, RotationStage.CLEAR, RotationStage.VERIFY]
)
def test_a_clock_that_is_set_back_lets_nobody_wait_until_it_has_caught_up(
    step: RotationStage,
) -> None:
    world = rotated(World(), step)
    world.now -= 500
    assert world.record is not None
    until = decide(world.record, world.seen(), world.limits).until
    assert until <= world.now + world.limits.document_s


class Walk(RuleBasedStateMachine):
    """Whatever meets whatever: one prompt in a fresh context, or a person is told why not."""

    world = World()

    @initialize(codex=st.booleans(), names=st.booleans(), proves=st.booleans())
    def begins(self, codex: bool, names: bool, proves: bool) -> None:
        self.world = World(codex=codex, names=names, proves=proves)

    def went(self, what: str) -> None:
        note(f"{self.world.now:.0f} {what}: {self.world.record}")
        self.world.run()
        self.check()

    def check(self) -> None:
        world = self.world
        resumed = heard(world, "resume")
        fresh = [context for context, _ in resumed if context != world.old]
        once = [context for context in fresh if context not in world.replaced]
        assert len(once) == len(set(once)), f"more than one prompt: {resumed}"
        for context in fresh:
            first = next(key for number, key in world.agent.heard if number == context)
            assert first.startswith("resume"), f"something comes before it: {world.agent.heard}"
        asked = [n for n, key in world.agent.heard if key.startswith(("ask", "sections"))]
        assert set(asked) <= {world.old}, f"asked in another context: {world.agent.heard}"
        assert world.codex or fresh == [context for context, _ in resumed], "in the old context"
        if world.outcome and world.outcome.act is RotationAct.FINISH:
            assert fresh
        if world.outcome and world.outcome.act is RotationAct.GIVE_UP:
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
    @rule(missing=st.sampled_from([(), SECTIONS]))
    def the_agent_writes(self, missing: tuple[str, ...]) -> None:
        self.world.document = HandoffDocument("/h.md", f"{self.world.now}", self.world.now, missing)
        self.went("a document")

    @precondition(lambda self: self.world.agent.alive)
    @rule(background=st.booleans())
    def the_turn_ends(self, background: bool) -> None:
        self.world.begin_turn()
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
        if resumed and not self.world.agent.silent:
            self.world.resume()
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

    @precondition(lambda self: self.world.agent.alive)
    @rule()
    def a_person_says_something(self) -> None:
        self.world.begin_turn()
        self.world.agent.others = True
        self.went("a person says something")

    @rule(swallows=st.booleans(), deaf=st.booleans(), fails=st.booleans())
    def the_client_misbehaves(self, swallows: bool, deaf: bool, fails: bool) -> None:
        self.world.swallows_clear, self.world.deaf = swallows, deaf
        self.world.fails_to_start = fails
        self.went("the client misbehaves")

    @rule()
    def somebody_delivers(self) -> None:
        self.world.deliver()
        self.went("a deliverer comes by")

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
        world.fails_to_start = False
        for _ in range(40):
            if world.record is None:
                return
            if not world.agent.alive:
                world.start_anew()
            until = world.run()
            self.check()
            world.now += 1
            world.begin_turn()
            world.agent.worked_at = world.agent.idle_since = world.now
            world.agent.background_since = None
            world.run()
            self.check()
            world.now += world.limits.written_s
            world.run()
            self.check()
            world.step(min(until, world.now + 2000))
        raise AssertionError(f"never ends: {world.record}")


@pytest.mark.hypothesis
def test_the_agent_ends_with_one_prompt_in_a_fresh_context_or_a_person_knows() -> None:
    walk(Walk, settings=walks(150, steps=25))
