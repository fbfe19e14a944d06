"""What `sm doctor` and `sm uninstall` say of usage windows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sm.plugins.windows import figures
from sm.plugins.windows.checks import check_windows
from sm.plugins.windows.files import list_figures
from sm.setup.finding import Level
from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.plugins.windows.test_hold import HOUR_S, NOW, RESET, begin, tell


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "AGAIN_S", -1.0)


def check(stage: Stage) -> list[tuple[Level, str]]:
    return [(one.level, one.what) for one in check_windows(stage.project.config)]


def test_it_is_silent_where_nothing_is_set(tmp_path: Path, root: Root) -> None:
    assert check(make_stage(tmp_path, auto=False)) == []


def test_what_is_used_is_shown_and_what_is_not_told_is_named(tmp_path: Path, root: Root) -> None:
    stage = make_stage(tmp_path, auto=False, settings={"limits": {"hold": 90}})
    ((level, what),) = check(stage)
    assert (level, "the first answer" in what) == (Level.OK, True)
    session = begin(stage, tmp_path / "a")
    tell(session, "- - - -", NOW - 3 * HOUR_S)
    ((level, what),) = check(stage)
    assert (level, "no agent tells" in what) == (Level.WARN, True)
    tell(session, f"42 {RESET} 7 {RESET}", NOW - 2 * HOUR_S)
    ((level, what),) = check(stage)
    assert level is Level.OK
    assert what.startswith(f"'{tmp_path / 'a'}': five hours: 42 % used, anew at ")
    assert "; week: 7 % used, anew at " in what
    tell(session, "- - - -", NOW)
    ((level, what),) = check(stage)
    assert (level, "have told nothing since" in what) == (Level.WARN, True)


def test_its_file_goes_with_sm(tmp_path: Path, root: Root) -> None:
    stage = make_stage(tmp_path, auto=False, settings={"limits": {"hold": 90}})
    machine = stage.project.machine
    assert not list(list_figures(machine, os.environ))
    session = begin(stage, tmp_path / "a")
    tell(session, f"42 {RESET} - -")
    figures.gather(stage.project.root, 90)
    for part in list_figures(machine, os.environ):
        part.remove()
    assert not figures.locate().exists()
