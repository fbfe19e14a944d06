"""Readings, and the flags beside them, as hooks and sm write them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sm.context import usage
from sm.context.flags import (
    make_notice_id,
    read_flags,
    read_wake_threshold,
    rearm,
    save_flags,
    set_wake_threshold,
)
from sm.context.thresholds import FillReading, Flags, Notice
from sm.messages import queue
from sm.messages.queue import Message, MessageFolder, Mode
from sm.sessions import agent_state
from sm.sessions.failure import parse_usage
from sm.store.paths import Root
from tests.hooks import CONTEXT, OTHER, Hooks

NOW_FLAGS = Flags(context=CONTEXT)


@pytest.fixture
def hooks(root: Root) -> Hooks:
    made = Hooks(root).make()
    made.be("busy")
    return made


def test_a_line_of_the_hook_is_read_with_and_without_tokens(hooks: Hooks) -> None:
    hooks.dir.usage.write_text("1500.5 c1 42.5 200000 - - - - 85000\n")
    assert usage.read(hooks.dir) == FillReading(
        at=1500.5, context="c1", percent=42.5, window=200000, tokens=85000
    )
    hooks.dir.usage.write_text("1500.5 c1 42.5 200000 - - - -\n")
    found = usage.read(hooks.dir)
    assert found is not None
    assert (found.tokens, found.used) == (None, 85000)
    hooks.dir.usage.write_text("1500.5 - - - - - - - -\n")
    assert usage.read(hooks.dir) == FillReading(at=1500.5)


@pytest.mark.parametrize("line", ["", "\n", "x", "a b c d e f g h", "1 c 50", "\x00\xff" * 9])
def test_what_is_no_reading_is_none(hooks: Hooks, line: str) -> None:
    assert usage.read(hooks.dir) is None
    hooks.dir.usage.write_text(line)
    assert usage.read(hooks.dir) is None


def test_something_else_in_its_place_is_no_reading(hooks: Hooks, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("1500.5 c1 42.5 200000 - - - - 85000\n")
    hooks.dir.usage.symlink_to(tmp_path / "other")
    assert usage.read(hooks.dir) is None


def test_a_noted_reading_is_read_back_and_leaves_the_limits(hooks: Hooks) -> None:
    limits = {"five_hour": {"used_percentage": 42, "resets_at": 1795278408}}
    hooks.call("statusline_50", rate_limits=limits)
    before = parse_usage(hooks.dir.usage.read_text())
    noted = FillReading(at=time.time(), context=CONTEXT, percent=61.5, window=200000, tokens=123000)
    usage.note(hooks.dir, noted)
    found = usage.read(hooks.dir)
    assert found is not None
    assert abs(found.at - noted.at) < 0.001
    assert (found.percent, found.tokens, found.context) == (61.5, 123000, CONTEXT)
    assert parse_usage(hooks.dir.usage.read_text()) == before
    hooks.call("statusline_50")  # writes over it
    assert len(hooks.dir.usage.read_text().splitlines()) == 1


def test_no_reading_is_noted_while_the_context_is_summed_up(hooks: Hooks) -> None:
    hooks.dir.compacting.write_text(f"{time.time():.6f}\n")
    usage.note(hooks.dir, FillReading(at=time.time(), context=CONTEXT, percent=90))
    assert usage.read(hooks.dir) is None


def counts(hooks: Hooks, flags: Flags = NOW_FLAGS) -> bool:
    return usage.read_current(hooks.dir, flags) is not None


def test_a_reading_of_the_present_context_counts(hooks: Hooks) -> None:
    hooks.call("statusline_50")
    assert counts(hooks)


def test_a_reading_from_before_the_reset_does_not_count_and_the_next_does(hooks: Hooks) -> None:
    hooks.call("statusline_85")
    flags = Flags(context=CONTEXT, reset_at=time.time())
    assert not counts(hooks, flags)
    hooks.call("statusline_50")
    assert counts(hooks, flags)


def test_a_reset_of_the_future_keeps_no_reading_from_counting(hooks: Hooks) -> None:
    hooks.call("statusline_85")
    assert counts(hooks, Flags(context=CONTEXT, reset_at=time.time() + 3600))


def test_a_reading_of_another_context_does_not_count(hooks: Hooks) -> None:
    hooks.call("statusline_85")
    hooks.be("idle", context=OTHER)
    assert not counts(hooks, Flags(context=OTHER))


def test_a_reading_under_flags_of_another_context_does_not_count(hooks: Hooks) -> None:
    hooks.call("statusline_85")
    assert not counts(hooks, Flags(context=OTHER))


def test_an_unknown_percentage_and_one_during_a_compaction_do_not_count(hooks: Hooks) -> None:
    hooks.call("statusline_before_first_call")
    assert not counts(hooks)
    hooks.call("statusline_85")
    hooks.dir.compacting.write_text(f"{time.time():.6f}\n")
    assert not counts(hooks)


# Flags


def test_re_arming_begins_anew_and_asks_for_the_next_reading(hooks: Hooks) -> None:
    save_flags(
        hooks.dir, Flags(context=CONTEXT, warned=True, critical=True, cycled=True, reset_at=5.0)
    )
    set_wake_threshold(hooks.dir, None)
    at = time.time() - 1
    rearm(hooks.dir, at)
    assert read_flags(hooks.dir) == Flags(context=CONTEXT, reset_at=at)
    assert hooks.dir.threshold.read_text() == "0\n"
    assert hooks.poked("statusline_50") == b"\n"


def test_of_resets_that_were_noticed_late_the_last_counts(hooks: Hooks) -> None:
    later = time.time() - 1
    rearm(hooks.dir, later)
    rearm(hooks.dir, later - 100)
    assert read_flags(hooks.dir).reset_at == later
    hooks.be("busy", context=OTHER)
    rearm(hooks.dir, later - 100)
    assert read_flags(hooks.dir) == Flags(context=OTHER, reset_at=later - 100)


def test_what_still_waits_to_be_told_of_the_old_context_is_taken_back(hooks: Hooks) -> None:
    rearm(hooks.dir, time.time())
    flags = read_flags(hooks.dir)
    for folder in (hooks.dir.queue, *hooks.dir.queue.iterdir()):
        folder.chmod(0o700)
    for notice in Notice:
        ident = make_notice_id(hooks.dir, flags, notice)
        assert queue.put(hooks.dir, Message(id=ident, text=str(notice), mode=Mode.URGENT))
    assert queue.put(hooks.dir, Message(id="somebody", text="hello"))
    rearm(hooks.dir, time.time())
    assert [one.id for one in queue.list_messages(hooks.dir, MessageFolder.WAITING)] == ["somebody"]


def test_each_filling_of_each_context_has_messages_of_its_own(hooks: Hooks) -> None:
    values = [Flags(context=c, reset_at=at) for c in ("a", "b") for at in (1.0, 2.0)]
    idents = {make_notice_id(hooks.dir, one, notice) for one in values for notice in Notice}
    assert len(idents) == 8
    assert all(queue.ID.fullmatch(one) for one in idents)


def test_the_threshold_is_written_only_when_it_changes(hooks: Hooks) -> None:
    assert read_wake_threshold(hooks.dir) is None
    set_wake_threshold(hooks.dir, 65)
    assert read_wake_threshold(hooks.dir) == 65
    os.utime(hooks.dir.threshold, (1000, 1000))
    set_wake_threshold(hooks.dir, 65)
    assert hooks.dir.threshold.stat().st_mtime == 1000
    set_wake_threshold(hooks.dir, None)
    set_wake_threshold(hooks.dir, None)
    assert not hooks.dir.threshold.exists()


def test_a_context_began_when_its_hook_said_so(hooks: Hooks) -> None:
    hooks.call("SessionStart_clear")
    os.utime(hooks.dir.context, (1500, 1500))
    assert usage.read_beginning(hooks.dir, agent_state.read(hooks.dir).context) == 1500
    hooks.be("busy", context=OTHER)
    assert (
        abs(usage.read_beginning(hooks.dir, agent_state.read(hooks.dir).context) - time.time()) < 5
    )
