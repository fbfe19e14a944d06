"""A tick takes issues up side by side, as slots become free, and tells of each in its order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sm.adapters.tmux import Tmux
from sm.base.act import run
from sm.issues import meters, poll
from sm.issues.look.slot import read_slot
from sm.issues.rules.allowance import Allowance, LimitStage
from sm.issues.work import claim, slots
from sm.sessions import monitors
from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.helpers import an_issue, remove_tree

Make = Callable[..., Stage]

MEET = """
touch "$SM_CLONE/../begun-${SM_WORKTREE##*-}"
for _ in $(seq 200); do
  set -- "$SM_CLONE"/../begun-*
  [ $# -lt 2 ] || exit 0
  sleep 0.05
done
exit 1
"""
"""A setup that ends when another one has begun."""


@pytest.fixture
def make(
    tmp_path: Path, root: Root, tmux_socket: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Make]:
    """Make a stage without monitors."""
    assert root.path
    assert tmux_socket
    monkeypatch.setattr(monitors, "ensure", lambda _: False)
    made: list[Stage] = []

    def of(**settings: object) -> Stage:
        made.append(make_stage(tmp_path, auto=False, settings=settings))
        return made[-1]

    yield of
    for stage in made:
        stage.end()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor: one after another")
def test_issues_are_started_side_by_side_and_told_of_in_order(make: Make) -> None:
    stage = make(max_sessions=3, worktree={"setup": MEET})
    for title in ("One", "Two", "Three"):
        stage.file_issue(title)
    (stage.folder / "clone-worktrees").mkdir()
    (stage.folder / "clone-worktrees" / "harb-2").touch()  # in the way of the second
    lines = list(poll.tick(stage.project))
    assert lines[0] == "pick up #1 One"
    assert lines[1].startswith("cannot pick up #2 Two: '")
    assert lines[2] == "pick up #3 Three"
    assert len(stage.project.tmux.panes()) == 2


def test_a_slot_that_is_freed_during_a_tick_is_filled_by_it(make: Make) -> None:
    project = make(max_sessions=1).project
    admitted = poll._admit(project, [an_issue(number) for number in (1, 2, 3)])
    assert next(admitted).number == 1
    slots.free_by_name(project, "dev-harb-1")
    assert next(admitted).number == 2
    assert list(admitted) == []


def test_a_tick_ends_after_a_while_although_slots_are_free(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make(max_sessions=9).project
    monkeypatch.setattr(poll, "PICK_UP_S", 0.0)
    assert list(poll._admit(project, [an_issue(1)])) == []
    assert slots.count_free(project) == 9


def test_no_more_sessions_are_opened_than_may_be(make: Make) -> None:
    stage = make(max_sessions=1, max_open=2)
    for _ in range(3):
        stage.file_issue()
        list(poll.tick(stage.project))
        for session in stage.sessions():
            slots.free(session)
    assert [session.issue for session in stage.sessions()] == [1, 2]
    hint = "2 sessions are open, so no issue is taken up (max_open)"
    assert hint in stage.sm("status").stdout


def test_lost_sessions_begin_anew_as_slots_become_free(make: Make) -> None:
    """Their agents are gone with the machine; all at once would be more than may work."""
    stage = make(max_sessions=1)
    for issue in (stage.file_issue("First"), stage.file_issue("Second")):
        claim.claim(stage.project.git, stage.project.settings, issue, stage.project.root)
    assert list(poll.tick(stage.project)) == [
        "#2 Second waits for a free slot",
        "take up again #1 First",
    ]
    slots.free(stage.session(1))
    assert "take up again #2 Second" in list(poll.tick(stage.project))


def test_a_living_agent_is_adopted_although_no_slot_is_free(make: Make) -> None:
    stage = make(max_sessions=1)
    stage.file_issue("First")
    list(poll.tick(stage.project))
    slots.free(stage.session(1))
    stage.file_issue("Second")
    list(poll.tick(stage.project))
    remove_tree(stage.session(1).dir.path)
    assert "take up again #1 First" in list(poll.tick(stage.project))
    assert read_slot(stage.session(1)).held_at
    assert len(Tmux(stage.project.config.tmux_socket).panes()) == 2


def test_a_dry_run_takes_no_slot(make: Make) -> None:
    stage = make(max_sessions=1)
    for title in ("First", "Second"):
        stage.file_issue(title)
    assert list(poll.tick(stage.project, dry_run=True)) == ["would pick up #1 First"]
    assert not stage.project.directory.slots.exists()


def test_nothing_new_is_begun_that_a_meter_is_against(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make(max_sessions=3)
    for title in ("One", "Two", "Three"):
        stage.file_issue(title)
    spent = Allowance(
        LimitStage.OVER, "day", "$4.10 of $5.00 today", None, run("sm budget raise harb")
    )
    asked = iter((None, None, spent, spent))
    monkeypatch.setattr(meters, "find_objection", lambda _: next(asked))
    assert list(poll.tick(stage.project)) == ["pick up #1 One"]
    assert "nothing new is taken up: $4.10 of $5.00 today" in list(poll.tick(stage.project))
    assert len(stage.sessions()) == 1
