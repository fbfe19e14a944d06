"""Names of the private directory that stand for something else: out of the way, and said once."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.sessions import registry
from sm.store import journal, lock
from sm.store.files import write_atomic
from sm.store.paths import EntryKind, ProjectDir, Root, SessionDir, layout
from sm.store.repair import repair
from sm.views.event_words import describe, name_event
from tests.residents import settle


@pytest.fixture
def directory(root: Root, tmp_path: Path) -> SessionDir:
    """A session's own directory."""
    return settle(root, tmp_path, "s-1").dir


def is_link(path: Path) -> None:
    path.symlink_to("/etc")


def is_dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def is_file(path: Path) -> None:
    path.write_text("in the way")
    path.chmod(0o600)


def has_no_mode(path: Path) -> None:
    path.mkdir(mode=0o000)


def is_open(path: Path) -> None:
    path.mkdir()
    path.chmod(0o755)


def list_problems(root: Root) -> list[str]:
    return [
        describe(event) for event in journal.read(root.journal) if name_event(event) == "problem"
    ]


def is_right(path: Path, kind: EntryKind) -> bool:
    """Whether it can be used: a file may as well be missing."""
    if kind is EntryKind.FILE and not os.path.lexists(path):
        return True
    found = path.lstat()
    wanted = {
        EntryKind.FILE: stat.S_IFREG,
        EntryKind.DIRECTORY: stat.S_IFDIR,
        EntryKind.FIFO: stat.S_IFIFO,
    }
    needed = 0o700 if kind is EntryKind.DIRECTORY else 0o600
    return stat.S_IFMT(found.st_mode) == wanted[kind] and found.st_mode & 0o700 == needed


DAMAGES: list[Callable[[Path], object]] = [
    *(is_link, is_dangling, is_file, Path.mkdir, os.mkfifo, has_no_mode, is_open)
]
"""Ways in which a name can stand for something else."""


@pytest.mark.parametrize("damage", DAMAGES)
def test_whatever_is_in_place_of_a_file_of_a_session_makes_room(
    root: Root, directory: SessionDir, damage: Callable[[Path], object]
) -> None:
    for place, kind in layout(SessionDir).items():
        path, before = directory.path / place, list_problems(root)
        path.unlink(missing_ok=True)
        damage(path)
        repair(root, directory)
        assert is_right(path, kind), place
        said = list_problems(root)
        repair(root, directory)
        assert list_problems(root) == said, place
        new = [each for each in said if each not in before]
        assert all(str(path) in each for each in new)


@pytest.mark.parametrize("mode", [0o000, 0o200, 0o400])
def test_a_file_that_may_not_be_read_may_be_again_with_what_is_in_it(
    root: Root, directory: SessionDir, mode: int
) -> None:
    before = directory.identity.read_bytes()
    directory.identity.chmod(mode)
    repair(root, directory)
    assert stat.S_IMODE(directory.identity.stat().st_mode) == 0o600
    assert directory.identity.read_bytes() == before
    assert f"had mode {mode:03o}" in list_problems(root)[0]


def test_a_file_with_another_name_becomes_a_copy(root: Root, directory: SessionDir) -> None:
    directory.identity.with_name(".backup").hardlink_to(directory.identity)
    before = directory.identity.stat()
    repair(root, directory)
    after = directory.identity.stat()
    assert (after.st_nlink, after.st_mtime_ns) == (1, before.st_mtime_ns)
    assert registry.load(root, "s-1").name == "s-1"


def test_a_lock_that_is_held_stays_whatever_its_other_names(
    root: Root, directory: SessionDir
) -> None:
    with lock.hold(directory.lock):
        directory.lock.with_name(".backup").hardlink_to(directory.lock)
        before = directory.lock.stat().st_ino
        repair(root, directory)
        assert directory.lock.stat().st_ino == before
    repair(root, directory)
    assert directory.lock.stat().st_ino != before


def test_what_nobody_knows_is_left_alone(root: Root, directory: SessionDir) -> None:
    (directory.path / "of-a-later-version").mkdir(mode=0o755)
    repair(root, directory)
    assert (directory.path / "of-a-later-version").is_dir()
    assert not list_problems(root)


def test_the_private_directory_and_those_of_projects_are_put_in_order_too(root: Root) -> None:
    project = root.project("harb")
    project.path.mkdir(parents=True)
    root.private.chmod(0o700)
    for path in (root.journal, root.health, root.new_lock, project.snapshot, project.turn):
        path.mkdir()
    for path in (root.sessions, root.probe, project.ci):
        write_atomic(path, "in the way")
    repair(root, project)
    assert is_right(root.sessions, EntryKind.DIRECTORY)
    # The folders of the projects, too, which were made with the umask's mode.
    assert len(list_problems(root)) == 10
    folders = {name for name, kind in layout(ProjectDir).items() if kind is EntryKind.DIRECTORY}
    assert folders == {
        "ci",
        "awaited-turns",
        "placements",
        "slots",
        "slot-line",
        "unconfirmed-replies",
    }
