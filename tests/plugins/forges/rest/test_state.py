"""Files of a forge elsewhere: whatever is in place of one makes room for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sm.plugins.forges.rest.state import ForgeFiles, StateFiles
from sm.store.paths import Root, layout
from tests.store.test_repair import DAMAGES, is_right, list_problems


@pytest.mark.parametrize("place", sorted(layout(ForgeFiles)))
@pytest.mark.parametrize("damage", DAMAGES)
def test_whatever_is_in_place_of_a_file_makes_room(
    tmp_path: Path, place: str, damage: Callable[[Path], object]
) -> None:
    root = Root(tmp_path)
    folder = root.project("harb").path
    folder.mkdir(parents=True, mode=0o700)
    damage(folder / place)
    StateFiles(folder)
    assert is_right(folder / place, layout(ForgeFiles)[place])
    said = list_problems(root)
    StateFiles(folder)
    assert list_problems(root) == said
    assert all(str(folder / place) in one for one in said)


def test_outside_of_a_state_root_nothing_is_touched(tmp_path: Path) -> None:
    (tmp_path / "rules.json").mkdir()
    StateFiles(tmp_path)
    assert (tmp_path / "rules.json").is_dir()
