"""What is told of a filling context, and when: real hooks with captured payloads, real files."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import structs

from sm.adapters import procfs
from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import GENERIC
from sm.adapters.tmux import Tmux
from sm.base.errors import StateError
from sm.config.schema import ContextMonitor, HandoffCycle
from sm.context import finish, health_log, monitor, rotation_files, run, usage
from sm.context.flags import read_flags, read_wake_threshold, rearm, save_flags
from sm.context.monitor import tend_context
from sm.context.rotation import Cause, RotationRecord, RotationStage, begin
from sm.context.thresholds import FillReading, Flags
from sm.messages import queue
from sm.messages.queue import Message, MessageFolder, Mode
from sm.sessions import agent, hook_events, registry
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession, Session
from sm.sessions.settings import Settings
from sm.store import journal
from sm.store.files import CLOCK_SLACK_S, write_json
from sm.store.lock import is_held
from sm.store.paths import Root, SessionDir
from sm.views.event_words import describe, name_event
from tests.helpers import wait_for
from tests.hooks import CONTEXT, OTHER, Hooks, payload

WARNING = (
    "[sm context] Context at 50% (100,000 tokens). "
    "Consider writing a handoff doc and running `sm handoff <path>`."
)
CRITICAL = (
    "[sm context] Context at 65% — critically high. "
    "Write your handoff doc NOW and run `sm handoff <path>`. Compaction is imminent."
)
LOST = "[sm context] Compaction fired for ann. Context was lost."


class Watched:
    """A session whose agent tells how full its context is; this process stands in for it."""

    def __init__(self, root: Root, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.parent = self._put("s-parent", "boss")
        self.session = self._put("s-ann", "ann", parent=self.parent.name)
        self.hooks = Hooks(root, name=self.session.name)
        self.profile: Profile = CLAUDE
        self.settings = Settings()
        self.start()

    def _put(self, name: str, alias: str, parent: str = "") -> AdHocSession:
        work = self.folder / alias
        work.mkdir()
        session = AdHocSession(
            AdHocRecord(
                name=name,
                provider="claude",
                cwd=work,
                config=None,
                state_root=self.root.path,
                created_at=1000.0,
                parent=parent,
                command="",
                alias=alias,
            )
        )
        registry.create(self.root, session)
        agent = procfs.find(os.getpid())
        assert agent
        session.dir.agent_pid.write_text(f"{agent.pid} {agent.started}\n")
        session.dir.agent_pid.chmod(0o600)
        return session

    def start(self, sample: str = "SessionStart_startup", **changes: object) -> None:
        """The agent's context begins. Its hook is not that of our own agent's child here."""
        self.session.dir.agent_pid.rename(self.folder / "pid")
        self.hooks.call(sample, **changes)
        (self.folder / "pid").rename(self.session.dir.agent_pid)

    def at(self, percent: float | None, context: str = CONTEXT, **more: object) -> None:
        """The status line says so, and whoever comes by looks."""
        self.say(percent, context, **more)
        self.tend()

    def say(self, percent: float | None, context: str = CONTEXT, **more: object) -> None:
        tokens = None if percent is None else round(percent * 2000)
        window: dict[str, object] = {
            "context_window_size": 200000,
            "total_input_tokens": tokens,
            **more,
        }
        window["used_percentage"] = percent
        self.hooks.send(
            "statusline", payload("statusline_50", session_id=context, context_window=window)
        )

    def compact(self, percent: float, trigger: str = "auto") -> None:
        """The context is summed up, and is as full afterwards."""
        self.hooks.call(f"PreCompact_{trigger}")
        self.tend()
        self.start("SessionStart_compact")
        self.hooks.call(f"PostCompact_{trigger}")
        self.at(percent)

    @property
    def opened(self) -> Session:
        parts = {"tmux": Tmux("none"), "profile": self.profile, "settings": self.settings}
        return self.session.change().provide(**parts)

    def tend(self) -> float:
        return tend_context(self.opened)

    @property
    def told(self) -> list[str]:
        """What the agent is about to be told, by age."""
        waiting = queue.list_messages(self.session.dir, MessageFolder.WAITING)
        return [one.text for one in sorted(waiting, key=lambda one: one.created_at)]

    @property
    def parent_told(self) -> list[str]:
        return [one.text for one in queue.list_messages(self.parent.dir, MessageFolder.WAITING)]

    @property
    def threshold(self) -> int | None:
        return read_wake_threshold(self.session.dir)

    def events(self, kind: str) -> list[str]:
        """What the journal has of that kind."""
        found = journal.read(self.root.journal, self.session.name)
        return [describe(event) for event in found if name_event(event) == kind]


@pytest.fixture
def ann(root: Root, tmp_path: Path) -> Watched:
    return Watched(root, tmp_path)


# One of each in a filling of the context


def test_below_the_warning_nothing_is_said_and_the_hook_waits_for_it(ann: Watched) -> None:
    ann.at(49)
    assert ann.told == []
    assert ann.threshold == 50


def test_the_warning_comes_once_however_often_the_status_line_says_so(ann: Watched) -> None:
    for _ in range(3):
        ann.at(50)
    ann.at(51)
    assert ann.told == [WARNING]
    assert [one.mode for one in queue.list_messages(ann.session.dir, MessageFolder.WAITING)] == [
        Mode.SEQUENTIAL
    ]
    assert ann.threshold == 65


def test_critical_comes_once_and_at_once(ann: Watched) -> None:
    ann.at(50)
    for _ in range(3):
        ann.at(65)
    ann.at(70)
    assert ann.told == [WARNING, CRITICAL]
    modes = {
        one.text: one.mode for one in queue.list_messages(ann.session.dir, MessageFolder.WAITING)
    }
    assert modes == {WARNING: Mode.SEQUENTIAL, CRITICAL: Mode.URGENT}
    assert ann.threshold == 85
    assert ann.events("context") == [WARNING, CRITICAL]


def test_a_jump_past_both_is_answered_by_the_more_urgent_one_alone(ann: Watched) -> None:
    ann.at(20)
    ann.at(65)
    ann.at(55)
    assert ann.told == [CRITICAL]


def test_a_lower_reading_re_arms_nothing(ann: Watched) -> None:
    ann.at(50)
    ann.at(10)
    ann.at(0)
    ann.at(50)
    assert ann.told == [WARNING]
    ann.at(65)
    ann.at(30)
    ann.at(65)
    assert ann.told == [WARNING, CRITICAL]


def test_many_updates_before_anybody_looks_are_one_message(ann: Watched) -> None:
    for percent in (50, 51, 52, 53):
        ann.say(percent)
    ann.tend()
    ann.tend()
    assert len(ann.told) == 1
    assert ann.told[0].startswith("[sm context] Context at 53% (106,000 tokens).")


def test_more_than_all_counts_as_all(ann: Watched) -> None:
    ann.settings = Settings(cycle=HandoffCycle(enabled=False))
    ann.at(130)
    assert ann.told[0].startswith("[sm context] Context at 100% — critically high.")


def test_a_fraction_counts_as_what_it_is(ann: Watched) -> None:
    ann.at(49.99)
    assert ann.told == []
    ann.at(50.5)
    assert ann.told[0].startswith("[sm context] Context at 50.5% (101,000 tokens).")


# Readings that mean nothing


def test_before_the_first_call_nothing_is_known_and_nothing_missed(ann: Watched) -> None:
    ann.hooks.call("statusline_before_first_call")
    ann.tend()
    assert ann.told == []
    ann.at(50)
    assert ann.told == [WARNING]


def test_an_unknown_percentage_in_between_changes_nothing(ann: Watched) -> None:
    ann.at(50)
    ann.at(None)
    ann.at(50)
    assert ann.told == [WARNING]


def test_a_late_reading_of_a_cleared_context_raises_no_alarm(ann: Watched) -> None:
    ann.at(20)
    ann.start("SessionStart_clear", session_id=OTHER)
    ann.at(85)  # of the context before
    assert ann.told == []
    ann.at(50, OTHER)
    assert ann.told == [WARNING]


def test_a_reading_that_somebody_notes_of_another_context_raises_no_alarm(ann: Watched) -> None:
    ann.at(20)
    usage.note(ann.session.dir, FillReading(at=time.time(), context=OTHER, percent=85))
    ann.tend()
    assert ann.told == []
    assert not rotation_files.is_wanted(ann.session.dir)


def test_a_reading_from_before_the_clear_raises_no_alarm(ann: Watched) -> None:
    ann.say(85)
    ann.start("SessionStart_clear", session_id=OTHER)
    ann.tend()
    assert ann.told == []
    assert not rotation_files.is_wanted(ann.session.dir)


def test_a_reading_from_before_the_compaction_raises_no_alarm_and_the_next_counts(
    ann: Watched,
) -> None:
    ann.say(70)
    ann.hooks.call("PreCompact_auto")
    ann.say(70)  # debounced by the client, it comes while the context is summed up
    ann.tend()
    ann.start("SessionStart_compact")
    ann.tend()
    assert ann.told == []
    ann.at(65)
    assert ann.told == [CRITICAL]


def test_the_status_line_that_is_drawn_once_more_behind_a_compaction_does_not_count(
    ann: Watched,
) -> None:
    ann.at(65)
    assert ann.told == [CRITICAL]
    _taken(ann)
    ann.hooks.call("PreCompact_auto")
    ann.tend()
    ann.start("SessionStart_compact")
    ann.at(65)  # the count of before, told behind SessionStart
    assert ann.told == []
    assert usage.read_current(ann.session.dir, read_flags(ann.session.dir)) is None
    ann.at(50)
    assert ann.told == [WARNING]


def test_a_status_line_that_took_long_cannot_undo_a_reset(ann: Watched) -> None:
    ann.at(70)
    line = ann.session.dir.usage.read_text()
    ann.compact(20)
    ann.session.dir.usage.write_text(line)
    ann.tend()
    assert ann.told == []


def test_a_status_line_that_lasts_over_the_end_of_a_compaction_raises_no_alarm(
    ann: Watched,
) -> None:
    ann.at(20)
    ann.hooks.call("PreCompact_auto")
    ann.tend()
    began_at = read_flags(ann.session.dir).reset_at
    wait_for(lambda: time.time() - CLOCK_SLACK_S > began_at, "a moment of it")
    before = time.time() - CLOCK_SLACK_S
    ann.start("SessionStart_compact")
    line = f"{before:.6f} {CONTEXT} 84 200000 - - - - 168000"
    ann.session.dir.usage.write_text(f"{line:<159}\n")
    ann.tend()
    assert ann.told == []
    ann.at(50)
    assert ann.told == [WARNING]


def test_without_a_session_of_sm_nothing_is_read(root: Root) -> None:
    hooks = Hooks(root, env={"SM_SESSION_DIR": "", "CLAUDE_SESSION_MANAGER_ID": ""})
    assert hooks.call("statusline_85") == ""
    assert list(root.path.iterdir()) == []


# What re-arms


def test_a_compaction_re_arms_though_the_context_is_above_the_warning_afterwards(
    ann: Watched,
) -> None:
    ann.at(50)
    ann.at(65)
    assert ann.told == [WARNING, CRITICAL]
    _taken(ann)
    ann.compact(55)
    assert ann.told[0].startswith("[sm context] Context at 55% (110,000 tokens).")
    ann.at(65)
    assert ann.told[1:] == [CRITICAL]


def test_what_waits_of_the_context_before_is_not_told_in_the_new_one(ann: Watched) -> None:
    ann.at(50)
    ann.compact(10)
    assert ann.told == []
    ann.at(50)
    ann.start("SessionStart_clear", session_id=OTHER)
    ann.tend()
    assert ann.told == []


def test_a_rotation_re_arms(ann: Watched) -> None:
    ann.at(65)
    _taken(ann)
    rearm(ann.session.dir, time.time())
    assert ann.threshold == 0
    ann.tend()  # the reading from before
    assert ann.told == []
    ann.at(50)
    assert ann.told == [WARNING]


def test_a_persons_clear_re_arms(ann: Watched) -> None:
    ann.at(65)
    _taken(ann)
    ann.hooks.call("SessionEnd_clear")
    ann.start("SessionStart_clear", session_id=OTHER)
    ann.at(50, OTHER)
    assert ann.told == [WARNING]


def test_a_fresh_start_re_arms_and_a_resumed_context_does_not(ann: Watched) -> None:
    ann.at(50)
    _taken(ann)
    ann.start("SessionStart_resume")
    ann.at(50)
    assert ann.told == []
    ann.start("SessionStart_startup", session_id=OTHER)
    ann.at(50, OTHER)
    assert ann.told == [WARNING]


def test_a_context_that_is_taken_up_again_is_told_again(ann: Watched) -> None:
    ann.at(50)
    _taken(ann)
    ann.start("SessionStart_clear", session_id=OTHER)
    ann.tend()
    ann.start("SessionStart_resume")
    ann.at(50)
    assert ann.told == [WARNING]


def _taken(ann: Watched) -> None:
    """The agent has got what waited for it."""
    for one in queue.list_messages(ann.session.dir, MessageFolder.WAITING):
        queue.move(ann.session.dir, one, MessageFolder.WAITING, MessageFolder.HANDED)
        queue.settle(ann.session.dir, one)


# Killed in between, and losses


@pytest.mark.parametrize("point", ["context:told", "context:rearmed"])
def test_killed_in_between_nothing_is_told_twice(ann: Watched, point: str) -> None:
    ann.say(50)
    if point == "context:rearmed":
        ann.hooks.call("PreCompact_auto")
    _killed(ann, point)
    ann.tend()
    ann.tend()
    if point == "context:told":
        assert ann.told == [WARNING]
    else:
        assert ann.parent_told == [LOST]


def test_flags_that_are_lost_lead_to_no_second_message(ann: Watched) -> None:
    ann.at(50)
    ann.session.dir.context_flags.unlink()
    ann.at(50)
    assert len(ann.told) == 1
    ann.session.dir.context_flags.write_text("damaged")
    ann.at(50)
    assert len(ann.told) == 1


def test_a_lost_threshold_is_written_again(ann: Watched) -> None:
    ann.at(20)
    ann.session.dir.threshold.unlink()
    ann.tend()
    assert ann.threshold == 50


# A compaction


def test_a_compaction_is_told_once_and_noted_with_its_trigger(ann: Watched) -> None:
    ann.at(60)
    ann.compact(20)
    ann.tend()
    assert ann.parent_told == [LOST]
    assert ann.events("compaction") == ["Compaction triggered (auto): handoff was too late"]
    assert len(ann.events("person")) == 1
    ann.compact(20, "manual")
    assert ann.parent_told == [LOST, LOST]
    assert ann.events("compaction")[1:] == ["Compaction triggered (manual)"]


@pytest.mark.parametrize("tell", [(), ("parent",), ("person",), ("parent", "person")])
def test_who_hears_of_a_compaction_is_configured(
    ann: Watched, tell: tuple[Literal["parent", "person"], ...]
) -> None:
    out = ann.folder / "person"
    ann.settings = Settings(monitor=ContextMonitor(tell=tell), notify_command=f"cat >>'{out}'")
    ann.hooks.call("PreCompact_auto")
    ann.tend()
    ann.tend()
    assert ann.parent_told == [LOST] * ("parent" in tell)
    expected = "ann has lost its context to a compaction (auto)\n" * ("person" in tell)
    wait_for(lambda: (out.read_text() if out.exists() else "") == expected, "the command")


def test_a_compaction_after_the_clock_was_set_back_is_told(ann: Watched) -> None:
    ann.at(52)
    hook_events.note_told(ann.session.dir, f"{time.time() + 3600:.6f}")
    ann.compact(20)
    ann.tend()
    assert ann.parent_told == [LOST]


def test_a_subagents_compaction_is_not_told_as_the_agents(ann: Watched) -> None:
    ann.at(52)
    ann.hooks.call("PreCompact_auto", agent_id="a1")
    ann.tend()
    assert (ann.parent_told, ann.events("compaction")) == ([], [])
    assert len(ann.told) == 1
    ann.at(53)
    assert len(ann.told) == 1


def test_a_compaction_right_before_the_agents_death_is_told(ann: Watched) -> None:
    ann.at(52)
    ann.hooks.call("PreCompact_auto")
    ann.session.dir.agent_pid.unlink()
    ann.tend()
    assert ann.parent_told == [LOST]


def test_a_compaction_of_another_context_is_none(ann: Watched) -> None:
    ann.at(50)
    ann.hooks.call("PreCompact_auto", session_id=OTHER)
    ann.at(50)
    assert ann.parent_told == []
    assert len(ann.told) == 1


@pytest.mark.parametrize("place", ["told", "receipts"])
def test_a_compaction_that_cannot_be_told_holds_no_rotation_up(ann: Watched, place: str) -> None:
    ann.at(52)
    getattr(ann.session.dir, place).symlink_to("/nowhere")
    ann.hooks.call("PreCompact_auto")
    ann.session.dir.hold.write_text("\n")  # whose rotation is over
    with pytest.raises(StateError, match=str(getattr(ann.session.dir, place))):
        ann.tend()
    assert not ann.session.dir.hold.exists()


# The cycle


def test_the_cycle_begins_once_at_its_percentage_and_nothing_is_said_besides(ann: Watched) -> None:
    ann.at(85)
    record = rotation_files.read_record(ann.session.dir)
    assert record
    assert (record.cause, record.percent, record.context) == ("cycle", 85, CONTEXT)
    assert not any("[sm context]" in text for text in ann.told)
    assert ann.threshold is None
    ann.at(90)
    again = rotation_files.read_record(ann.session.dir)
    assert again
    assert again.id == record.id
    flags = read_flags(ann.session.dir)
    assert (flags.warned, flags.critical, flags.cycled) == (False, False, True)


def test_a_cycle_that_was_given_up_does_not_begin_again_in_the_same_context(ann: Watched) -> None:
    ann.at(85)
    rotation_files.drop(ann.session.dir)
    _taken(ann)
    ann.at(86)
    assert rotation_files.read_record(ann.session.dir) is None
    ann.compact(85)
    assert rotation_files.read_record(ann.session.dir)


def _given_up(ann: Watched) -> None:
    """Its cycle came to nothing, as whoever carries it on says."""
    record = rotation_files.read_record(ann.session.dir)
    assert record
    finish.give_up(ann.opened, record, "it has written no document")
    rotation_files.drop(ann.session.dir)
    _taken(ann)


def test_a_cycle_that_came_to_nothing_begins_again_at_three_points_more(ann: Watched) -> None:
    ann.at(86)
    _given_up(ann)
    ann.at(88)  # it is told that this is critical
    ann.tend()
    assert rotation_files.read_record(ann.session.dir) is None
    assert ann.threshold == 89
    ann.at(89)
    assert rotation_files.read_record(ann.session.dir)


def test_a_cycle_that_came_to_nothing_begins_again_after_half_an_hour_at_rest(
    ann: Watched,
) -> None:
    ann.at(86)
    _given_up(ann)
    ann.at(86)
    assert abs(ann.tend() - (time.time() + 1800)) < 60
    flags = read_flags(ann.session.dir)
    save_flags(ann.session.dir, structs.replace(flags, again_at=time.time() - 1))
    ann.tend()
    assert rotation_files.read_record(ann.session.dir)
    assert read_flags(ann.session.dir).again_at == 0


def test_a_cycle_that_was_given_up_silences_no_critical_notice(ann: Watched) -> None:
    ann.at(30)
    ann.at(85)
    rotation_files.drop(ann.session.dir)
    _taken(ann)
    ann.at(92)
    ann.at(93)
    assert [text[:29] for text in ann.told] == ["[sm context] Context at 92% —"]


@pytest.mark.parametrize("point", ["context:marked", "context:cycled"])
def test_killed_while_its_cycle_begins_a_context_has_no_second_one(
    ann: Watched, point: str
) -> None:
    ann.at(10)
    ann.say(90)
    _killed(ann, point)
    first = rotation_files.read_record(ann.session.dir)
    assert bool(first) == (point == "context:cycled")
    rotation_files.drop(ann.session.dir)
    _taken(ann)
    ann.tend()
    ann.at(91)
    assert rotation_files.read_record(ann.session.dir) is None
    assert len(ann.told) == 1
    assert "critically high" in ann.told[0]


def _killed(ann: Watched, point: str) -> None:
    """Whoever looks next is killed there."""
    child = os.fork()
    if not child:
        try:
            os.environ["SM_CRASH_AT"] = point
            ann.tend()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] != 0


@contextmanager
def forestalled(by: Callable[[], object]) -> Iterator[None]:
    """Have something happen between the mark of a cycle and its beginning.

    No lock is held there that a test could wait for, so the function itself is replaced.
    """
    begin_cycle = run.begin_cycle
    with pytest.MonkeyPatch.context() as patch:

        def late(*args: Any, **more: Any) -> RotationRecord | None:
            patch.undo()
            by()
            return begin_cycle(*args, **more)

        patch.setattr(run, "begin_cycle", late)
        yield


def test_a_cycle_that_another_rotation_forestalls_comes_when_that_is_over(ann: Watched) -> None:
    with forestalled(lambda: run.begin_cycle(ann.opened, Cause.COMMAND, None)):
        ann.at(90)
    record = rotation_files.read_record(ann.session.dir)
    assert record
    assert record.cause is Cause.COMMAND
    rotation_files.drop(ann.session.dir)
    ann.tend()
    record = rotation_files.read_record(ann.session.dir)
    assert record
    assert record.cause is Cause.CYCLE


def test_a_persons_clear_at_the_last_moment_begins_no_cycle_of_the_new_context(
    ann: Watched,
) -> None:
    ann.say(90)
    with forestalled(lambda: ann.start("SessionStart_clear", session_id=OTHER)):
        ann.tend()
    assert rotation_files.read_record(ann.session.dir) is None
    ann.at(90, OTHER)
    record = rotation_files.read_record(ann.session.dir)
    assert record
    assert record.context == OTHER


def test_the_cycle_is_raised_where_it_comes_too_often(ann: Watched) -> None:
    ann.settings = Settings(monitor=ContextMonitor(enabled=False))
    _cycled(ann, time.time() - 1800)
    _cycled(ann, time.time() - 60)
    ann.at(85)
    assert rotation_files.read_record(ann.session.dir) is None
    assert ann.threshold == 90
    ann.at(90)
    assert rotation_files.read_record(ann.session.dir)


def _cycled(ann: Watched, at: float) -> None:
    """A cycle of the session has ended at that moment."""
    record = begin(f"r{at:.0f}", Cause.CYCLE, at - 30, CONTEXT)
    entry = health_log.make_entry(record, at, project="", session=ann.session.name)
    health_log.append(ann.root, entry)


def test_a_cycle_without_a_place_for_its_document_is_told_once(ann: Watched) -> None:
    ann.session.record.cwd.rmdir()
    for percent in (85, 86, 87):
        ann.at(percent)
    assert rotation_files.read_record(ann.session.dir) is None
    assert len(ann.events("person")) == 1
    assert "cannot be given a new context at 85%" in ann.events("person")[0]
    assert [text[:44] for text in ann.told] == ["[sm context] Context at 85% — critically hig"]


# While its context is being replaced


def test_an_agent_that_hands_off_already_is_told_nothing(ann: Watched) -> None:
    ann.at(20)
    document = ann.folder / "doc.md"
    document.write_text("go on\n")
    rotation_files.schedule(ann.session, CLAUDE, document)
    ann.at(65)
    assert ann.told == []
    assert ann.threshold is None
    rotation_files.forget_wish(ann.session.dir)
    rotation_files.drop(ann.session.dir)
    ann.at(65)
    assert ann.told == [CRITICAL]


def test_a_wish_of_the_new_context_is_not_lost_where_the_agent_names_none(ann: Watched) -> None:
    asked(ann)
    now = time.time()
    steps = (
        (RotationStage.CLEAR, now - 9),
        (RotationStage.RESUME, now - 8),
        (RotationStage.VERIFY, now - 7),
    )
    under_way = structs.replace(
        begin("r", Cause.CYCLE, now - 60, "", "/h.md"),
        step=RotationStage.VERIFY,
        since=now - 7,
        steps=steps,
    )
    rotation_files.write_record(ann.session.dir, under_way)
    write_json(ann.session.dir.handoff, rotation_files.Handoff("/of-the-old-context.md", now - 10))
    ann.tend()
    assert rotation_files.read_wish(ann.session.dir) is None
    rotation_files.schedule(ann.session, ann.profile, Path("/next.md"))
    ann.tend()
    assert rotation_files.read_wish(ann.session.dir)
    assert rotation_files.read_record(ann.session.dir) == under_way


# Settings


def test_switched_off_it_says_nothing_and_the_cycle_still_comes(ann: Watched) -> None:
    ann.settings = Settings(monitor=ContextMonitor(enabled=False))
    ann.at(70)
    assert ann.told == []
    assert ann.threshold == 85
    ann.settings = Settings(
        monitor=ContextMonitor(enabled=False), cycle=HandoffCycle(enabled=False)
    )
    ann.at(99)
    assert (ann.told, rotation_files.read_record(ann.session.dir)) == ([], None)
    assert read_wake_threshold(ann.session.dir) is None


def test_switched_off_it_takes_back_what_waits_to_be_told(ann: Watched) -> None:
    ann.at(50)
    ann.at(65)
    off = Settings(monitor=ContextMonitor(enabled=False), cycle=HandoffCycle(enabled=False))
    ann.settings = off
    ann.tend()
    assert ann.told == []
    ann.settings = Settings()
    ann.tend()
    assert ann.told == [CRITICAL]
    _taken(ann)
    ann.settings = off
    ann.tend()
    ann.settings = Settings()
    ann.tend()
    assert ann.told == []


def test_thresholds_of_ones_own_hold(ann: Watched) -> None:
    monitor = ContextMonitor(warning_percentage=20, critical_percentage=30)
    ann.settings = Settings(monitor=monitor)
    ann.at(20)
    ann.at(30)
    assert [text[:30] for text in ann.told] == [
        "[sm context] Context at 20% (4",
        "[sm context] Context at 30% — ",
    ]


def test_an_agent_whose_context_cannot_be_replaced_is_told_nothing(ann: Watched) -> None:
    ann.profile = structs.replace(CLAUDE, clear="")
    ann.at(85)
    assert ann.told == []
    assert ann.threshold is None
    assert rotation_files.read_record(ann.session.dir) is None


# Agents that tell nobody


def asked(ann: Watched, **fields: object) -> Callable[[], float]:
    """An agent without hooks, which is asked every half minute."""
    ann.session.dir.state.unlink()
    ann.session.dir.usage.unlink(missing_ok=True)
    ann.profile = structs.replace(GENERIC, clear="/clear", **fields)

    def again() -> float:
        if usage.read(ann.session.dir):
            _earlier(ann)
        return ann.tend()

    return again


def test_a_command_tells_how_full_the_context_is(ann: Watched) -> None:
    percent = ann.folder / "percent"
    percent.write_text("50\n")
    command = f'echo "$CLAUDE_SESSION_MANAGER_ID" >>names; cat "{percent}"'
    again = asked(ann, context_command=command)
    assert abs(again() - (time.time() + usage.EVERY_S)) < 5
    assert [text[:28] for text in ann.told] == ["[sm context] Context at 50%."]
    ann.tend()  # too early
    names = ann.session.record.cwd / "names"
    assert names.read_text() == "s-ann\n"
    percent.write_text("66.5%\n")
    again()
    assert ann.told[1].startswith("[sm context] Context at 66.5% — critically high.")
    assert names.read_text() == "s-ann\ns-ann\n"


@pytest.mark.parametrize(
    "command", ["exit 1", "echo lots", "echo 50 60", "true", "kill -9 $$", "echo -5"]
)
def test_a_command_that_says_nothing_is_asked_again_later(ann: Watched, command: str) -> None:
    again = asked(ann, context_command=command)
    assert again() > time.time() + 20
    assert ann.told == []
    found = usage.read(ann.session.dir)
    assert found
    assert found.percent is None


def test_an_agent_that_has_ended_is_not_asked(ann: Watched) -> None:
    again = asked(ann, context_command="touch asked; echo 90")
    ann.session.dir.agent_pid.unlink()
    assert again() == float("inf")
    assert not (ann.session.record.cwd / "asked").exists()


@pytest.mark.parametrize(
    ("pattern", "screen", "percent"),
    [
        (r"ctx ([0-9.]+)%", "ctx 12%\nmore\n❯ ctx is full\n", 12.0),
        (r"ctx ([0-9.]+)%", "ctx 12%\nctx 13.5%\n❯ \n", 13.5),
        (r"(?P<left>\d+)% context left", "  \x1b[2m35% context left\x1b[0m", 65.0),
        (r"(?P<left>\d+)% context left", "nothing\n", None),
        (r"ctx (\S+)", "ctx full\n", None),
        (r"ctx (\d+)?", "ctx \n", None),
        (r"{glyph} (\d+)%", "❯ 70%\n", 70.0),
        (r"ctx (\d+)%", "ctx 140%\n", 100.0),
    ],
)
def test_a_pattern_finds_the_percentage_on_the_screen(
    pattern: str, screen: str, percent: float | None
) -> None:
    profile = structs.replace(GENERIC, context_pattern=pattern)
    assert usage.find_percent(profile, screen) == percent


@pytest.mark.parametrize(
    ("screen", "percent"),
    [
        ("\n› \n\n  Context 12% used · gpt-5-codex default · /home/ada · A test\n", 12.0),
        ("\n› \n\n  Context 12% used\n  ← for agents · ? for shortcuts\n", 12.0),
        ("› go on\n\n  Context 91% used · by the other agent\n\n› \n\n  /home/ada\n", None),
        ("› what is it?\n\n• It printed:\n\n  Context 91% used by the other agent\n", None),
        ("  Context 91% used · x\n  1. yes\n  2. no\n", None),
    ],
)
def test_of_codex_the_footer_counts_and_not_what_it_has_printed(
    screen: str, percent: float | None
) -> None:
    assert usage.find_percent(CODEX, screen) == percent


def test_an_agent_without_hooks_is_re_armed_by_a_rotation(ann: Watched) -> None:
    again = asked(ann, context_command="echo 50")
    again()
    _taken(ann)
    again()
    assert ann.told == []
    rearm(ann.session.dir, time.time() - usage.EVERY_S - 1)
    again()
    assert len(ann.told) == 1


def test_a_new_agent_without_hooks_is_told_again(ann: Watched) -> None:
    again = asked(ann, context_command="echo 50")
    _launched(ann, 1)
    again()
    again()
    assert len(ann.told) == 1
    _taken(ann)
    again()
    assert ann.told == []
    _launched(ann, 2)
    ann.tend()  # though its last agent was looked at just now
    assert len(ann.told) == 1
    _taken(ann)
    again()
    assert ann.told == []


def _launched(ann: Watched, generation: int) -> None:
    """The agent was started, by the clock that is."""
    process = agent.read_process(ann.session.dir)
    assert process
    known = agent.Agent(
        ann.session.name, process.pid, process.started, "%0", time.time(), generation
    )
    write_json(ann.session.dir.agent, known)


def test_an_agent_at_rest_is_not_asked_again_before_it_goes_on(ann: Watched) -> None:
    count = ann.folder / "count"
    ann.profile = structs.replace(CLAUDE, context_command=f"echo >>'{count}'; echo 10")
    ann.hooks.be("idle")
    ann.tend()
    assert ann.tend() == float("inf")
    ann.hooks.be("busy")
    _earlier(ann)
    assert abs(ann.tend() - (time.time() + usage.EVERY_S)) < 5
    assert count.read_text() == "\n\n"


def _earlier(ann: Watched) -> None:
    """The last reading was so long ago that another one is due."""
    found = usage.read(ann.session.dir)
    assert found
    usage.note(ann.session.dir, structs.replace(found, at=found.at - usage.EVERY_S))


# One look


@pytest.mark.parametrize("percent", [10, 52, 85])
def test_a_pass_reads_its_flags_once_and_under_the_lock(
    ann: Watched, monkeypatch: pytest.MonkeyPatch, percent: int
) -> None:
    ann.at(5)
    ann.say(percent)
    held = list[bool]()

    def read(directory: SessionDir) -> Flags:
        held.append(is_held(directory.delivery_lock))
        return read_flags(directory)

    monkeypatch.setattr(monitor, "read_flags", read)
    ann.tend()
    assert held == [True]


def test_when_a_rotation_is_over_the_status_line_wakes_the_monitor_again(ann: Watched) -> None:
    ann.at(20)
    ann.session.dir.hold.write_text("\n")  # whose rotation is over
    ann.tend()
    assert not ann.session.dir.hold.exists()
    assert ann.threshold == 50


# The whole of it is readable


def test_the_files_are_what_they_are_documented_to_be(ann: Watched) -> None:
    ann.at(50)
    flags = json.loads(ann.session.dir.context_flags.read_text())
    assert flags == {
        "context": CONTEXT,
        "warned": True,
        "critical": False,
        "cycled": False,
        "again_at": 0.0,
        "again_percent": 0.0,
        "reset_at": flags["reset_at"],
    }
    assert read_flags(ann.session.dir) == Flags(
        context=CONTEXT, warned=True, reset_at=flags["reset_at"]
    )
    assert ann.session.dir.context_flags.stat().st_mode & 0o777 == 0o600
    assert queue.put(ann.session.dir, Message(id="afterwards", text="x"))
