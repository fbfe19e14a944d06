"""The events that hooks leave: compactions are told once, the file stays short."""

from __future__ import annotations

import os

import pytest

from sm.sessions import hook_events
from sm.sessions.hook_events import Compaction
from sm.store.paths import Root, SessionDir


@pytest.fixture
def directory(root: Root) -> SessionDir:
    found = root.session("s-1")
    found.path.mkdir(parents=True, mode=0o700)
    return found


def test_a_compaction_is_told_once(directory: SessionDir) -> None:
    directory.events.write_text(
        "100.5 PreCompact c1 auto\n101.5 PreCompact c0 stale\nhalf a line\n102.5 Stop c1 -\n"
    )
    assert hook_events.list_compactions(directory) == [Compaction("100.5", "auto")]
    hook_events.note_told(directory, "100.5")
    assert hook_events.list_compactions(directory) == []
    with directory.events.open("a") as events:
        events.write("103.5 PreCompact c1 manual\n")
    assert hook_events.list_compactions(directory) == [Compaction("103.5", "manual")]


def test_a_compaction_after_the_clock_was_set_back_is_not_overlooked(
    directory: SessionDir,
) -> None:
    directory.events.write_text(
        "100.5 PreCompact c1 auto\n3700.5 PreCompact c1 auto\n101.5 PreCompact c1 manual\n"
    )
    hook_events.note_told(directory, "3700.5")
    assert hook_events.list_compactions(directory) == [Compaction("101.5", "manual")]
    hook_events.note_told(directory, "101.5")
    assert hook_events.list_compactions(directory) == []
    directory.events.write_text("102.5 PreCompact c1 auto\n")  # the other lines are trimmed
    assert hook_events.list_compactions(directory) == [Compaction("102.5", "auto")]


def test_a_long_file_begins_anew_and_keeps_its_time(directory: SessionDir) -> None:
    directory.events.write_text("100.5 PreCompact c1 auto\n" + "101.5 Stop c1 -\n" * 20_000)
    os.utime(directory.events, (5000, 5000))
    with directory.events.open("a") as hook:
        hook_events.trim(directory)
        hook.write("102.5 PreCompact c1 auto\n")
    assert directory.events.stat().st_size == 0
    assert directory.events.stat().st_mtime == 5000
    assert directory.events.stat().st_mode & 0o777 == 0o600
    assert [one.seconds for one in hook_events.list_compactions(directory)] == [100.5, 102.5]
    hook_events.trim(directory)
    assert directory.events_before.exists()
