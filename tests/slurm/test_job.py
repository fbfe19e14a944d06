"""What earlier sessions have left on a node: it goes after a while, unless work may be in it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sm.plugins.hosts.slurm.job import list_old
from sm.store.paths import Root

DAY_S = 24 * 3600


def make(place: Path, name: str, *, days: float = 30, session: bool = False) -> Path:
    root = Root(place / name)
    (root.sessions / "dev-harb-7" if session else root.sessions).mkdir(parents=True, mode=0o700)
    (root.path / "harb").mkdir()
    at = time.time() - days * DAY_S
    for path in (root.sessions, root.private, root.path):
        if path.exists():
            os.utime(path, (at, at))
    return root.path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def list_names(place: Path, *worktrees: Path) -> list[str]:
    found = list_old(place / "sm-dev-harb-1-ab", worktrees, time.time() - 7 * DAY_S)
    return [path.name for path in found]


def test_what_is_old_and_over_goes(place: Path) -> None:
    make(place, "sm-dev-harb-1-ab")
    make(place, "sm-dev-harb-2-ab")
    make(place, "sm-dev-harb-3-ab", days=6)
    make(place, "sm-dev-harb-2-cd")
    (place / "sm-file-ab").write_text("")
    (place / "sm-link-ab").symlink_to(place / "sm-dev-harb-2-ab")
    assert list_names(place) == ["sm-dev-harb-2-ab"], "old, of this installation, and not our own"


def test_what_may_hold_work_stays(place: Path) -> None:
    make(place, "sm-dev-harb-2-ab", session=True)
    within = make(place, "sm-dev-harb-3-ab")
    assert list_names(place, within / "trees" / "dev" / "issue-3") == []
