from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sm.adapters.file_copy import CopyError, copy_into


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A clone, a worktree, and a folder beside both that nothing may come to."""
    made = tmp_path / "clone", tmp_path / "tree", tmp_path / "outside"
    for folder in made:
        folder.mkdir()
    return made


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_mode_is_that_of_the_file_and_never_wider(folders: tuple[Path, Path, Path]) -> None:
    clone, tree, _ = folders
    for name, mode in (("key", 0o600), ("run", 0o755), ("set", 0o4755)):
        (clone / name).write_text(name)
        (clone / name).chmod(mode)
        assert copy_into(clone, tree, name)
        assert stat.S_IMODE((tree / name).stat().st_mode) == mode & 0o777
        assert (tree / name).read_text() == name
    assert names(tree) == ["key", "run", "set"]


def test_nothing_is_overwritten(folders: tuple[Path, Path, Path]) -> None:
    clone, tree, outside = folders
    (clone / "a").write_text("new")
    (tree / "a").write_text("old")
    assert not copy_into(clone, tree, "a")
    (clone / "b").write_text("new")
    (tree / "b").symlink_to(outside / "b")  # a link to nothing is there, too
    assert not copy_into(clone, tree, "b")
    assert (tree / "a").read_text() == "old"
    assert list(outside.iterdir()) == []


def test_what_a_kill_has_left_is_made_anew(folders: tuple[Path, Path, Path]) -> None:
    clone, tree, _ = folders
    (clone / "a").write_text("whole")
    (tree / ".a.sm-part").write_text("wh")
    assert copy_into(clone, tree, "a")
    assert names(tree) == ["a"]


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../outside/x", "a/../../outside/x", "a"])
def test_what_leads_out_or_is_no_file_is_refused(
    folders: tuple[Path, Path, Path], name: str
) -> None:
    clone, tree, outside = folders
    (outside / "x").write_text("secret")
    os.mkfifo(clone / "a")
    with pytest.raises(CopyError):
        copy_into(clone, tree, name)
    assert list(tree.iterdir()) == []


def test_links_on_the_way_are_not_followed(folders: tuple[Path, Path, Path]) -> None:
    """One that a branch has in the place of a folder; or one in the clone that leads out."""
    clone, tree, outside = folders
    (clone / "config").mkdir()
    (clone / "config/.env").write_text("secret")
    (tree / "config").symlink_to(outside)
    with pytest.raises(CopyError):
        copy_into(clone, tree, "config/.env")
    (outside / "key").write_text("secret")
    (clone / "away").symlink_to(outside)
    with pytest.raises(CopyError):
        copy_into(clone, tree, "away/key")
    assert names(outside) == ["key"]


@pytest.mark.parametrize(
    ("leads", "stays"),
    [
        ("b", True),
        ("../b", False),
        ("sub/../b", True),
        ("/etc/passwd", False),
        ("x/../../b", False),
    ],
)
def test_link_is_copied_as_one_while_it_stays_within(
    folders: tuple[Path, Path, Path], leads: str, stays: bool
) -> None:
    clone, tree, _ = folders
    (clone / "a").symlink_to(leads)
    if stays:
        assert copy_into(clone, tree, "a")
        assert str((tree / "a").readlink()) == leads
    else:
        with pytest.raises(CopyError, match="leads out"):
            copy_into(clone, tree, "a")
