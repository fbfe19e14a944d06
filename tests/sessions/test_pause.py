"""What is paused: kept for each state root in the user's data folder, and never lost in silence."""

from __future__ import annotations

import time
from pathlib import Path

from sm.sessions import pause
from sm.sessions.pause import EVERYTHING, Extent, Pause, PauseMark, Pauses, PauseTarget
from sm.store import lock
from sm.store.paths import Root

ALL = Pause(extent=Extent.EVERYTHING, since=1000.0, by="ana@box")
SHOP = Pause(extent=Extent.PROJECT, name="shop", called="shop", since=900.0, by="bob@box")
ANN = Pause(extent=Extent.SESSION, name="s-1", called="ann", since=800.0, by="bob@box")


def keep(root: Root, *pauses: Pause) -> None:
    with lock.hold(pause.locate_lock(root)):
        pause.save(root, pauses)


def test_everything_covers_all_a_project_its_sessions_and_a_session_itself_alone() -> None:
    covered = {
        one.called: [
            (project, session)
            for project, session in (("shop", "dev-shop-7"), ("shop", ""), ("", "s-1"), ("", ""))
            if one.covers(project, session)
        ]
        for one in (ALL, SHOP, ANN)
    }
    assert covered == {
        "": [("shop", "dev-shop-7"), ("shop", ""), ("", "s-1"), ("", "")],
        "shop": [("shop", "dev-shop-7"), ("shop", "")],
        "ann": [("", "s-1")],
    }


def test_the_widest_pause_is_the_one_that_is_told(root: Root) -> None:
    keep(root, ANN, SHOP, ALL)
    assert pause.find(root, "shop", "dev-shop-7") == ALL
    keep(root, ANN, SHOP)
    assert pause.find(root, "shop", "dev-shop-7") == SHOP
    assert pause.find(root, "", "s-2") is None


def test_it_is_kept_outside_of_the_state_root_and_by_each_root_for_itself(
    root: Root, sealed: Path, tmp_path: Path
) -> None:
    keep(root, ALL)
    assert pause.locate(root).is_relative_to(sealed / ".local/share/sm")
    assert pause.read(Root(tmp_path / "elsewhere")).pauses == ()
    link = tmp_path / "link"
    link.symlink_to(root.path)
    assert pause.read(Root(link)).pauses == (ALL,)


def test_a_record_that_cannot_be_read_pauses_all_and_says_so(root: Root) -> None:
    keep(root, ANN)
    pause.locate(root).write_text("{")
    found = pause.find(root, "shop")
    assert found is not None
    assert found.is_same(EVERYTHING)
    assert "nobody knows what was" in found.sentence
    assert str(pause.locate(root)) in found.sentence
    assert found.sentence.endswith(": sm resume")


def test_the_sentence_says_since_when_by_whom_why_and_how_to_go_on() -> None:
    now = time.time()
    today = Pause(extent=Extent.EVERYTHING, since=now, by="ana@box", reason="a release")
    clock = time.strftime("%H:%M", time.localtime(now))
    assert today.sentence == f"all is paused since {clock} by ana@box (a release): sm resume"
    assert SHOP.sentence.startswith("shop is paused since 1970-01-01 ")
    assert SHOP.sentence.endswith(" by bob@box: sm resume shop")


def test_a_session_that_is_over_is_forgotten(root: Root) -> None:
    keep(root, ANN, SHOP)
    pause.forget(root, "s-1")
    assert pause.read(root).pauses == (SHOP,)


def test_only_the_same_part_is_found_exactly() -> None:
    record = Pauses("", (SHOP, ANN))
    assert record.find_exactly(PauseTarget(extent=Extent.PROJECT, name="shop")) == SHOP
    assert record.find_exactly(PauseTarget(extent=Extent.SESSION, name="shop")) is None


def test_the_mark_goes_and_leaves_when_the_session_went_on(root: Root) -> None:
    directory = root.session("s-1")
    directory.path.mkdir(parents=True)
    assert pause.read_resumed_at(directory) == 0.0
    pause.remove_mark(directory)
    assert pause.read_resumed_at(directory) == 0.0
    pause.set_mark(directory, PauseMark(5.0, interrupted=True))
    assert pause.read_mark(directory) == PauseMark(5.0, interrupted=True)
    before = time.time()
    pause.remove_mark(directory)
    assert not pause.is_paused(directory)
    assert before <= pause.read_resumed_at(directory) <= time.time()
