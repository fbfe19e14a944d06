"""Locks that killed gits have left: which are removed, and which never."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sm.adapters import git_locks
from sm.adapters.git import Git
from sm.adapters.git_locks import OLD_S, clear
from tests.helpers import HANG_S, Repository, git, wait_for

KINDS = (
    *("config.lock", "packed-refs.lock", "shallow.lock", "HEAD.lock", "index.lock"),
    *("FETCH_HEAD.lock", "ORIG_HEAD.lock", "MERGE_RR.lock", "gc.pid.lock", "description.lock"),
    *("info/sparse-checkout.lock", "info/attributes.lock", "objects/maintenance.lock"),
    *("objects/info/commit-graph.lock", "objects/info/commit-graphs/commit-graph-chain.lock"),
    *("objects/pack/multi-pack-index.lock", "reftable/tables.list.lock"),
    *("refs/heads/main.lock", "refs/heads/fix/7.lock", "refs/remotes/origin/main.lock"),
    *("refs/sm/claims/7.lock", "refs/stash.lock"),
    *("worktrees/harb-7/index.lock", "worktrees/harb-7/HEAD.lock"),
    *("worktrees/harb-7/config.worktree.lock", "worktrees/harb-7/refs/bisect/bad.lock"),
    *("modules/lib/index.lock", "modules/deep/er/refs/heads/main.lock"),
    "worktrees/harb-7/modules/lib/config.lock",
)
SUBMODULES = ("modules/lib", "modules/deep/er", "worktrees/harb-7/modules/lib")


@pytest.fixture
def git_dir(repository: Repository) -> Path:
    """A clone's folder of git, with a worktree and submodules."""
    tree = repository.clone.with_name("harb-7")
    git(repository.clone, "worktree", "add", "-q", "-b", "fix/7", str(tree))
    found = repository.clone / ".git"
    for module in SUBMODULES:
        (found / module).mkdir(parents=True)
        (found / module / "HEAD").write_text("ref: refs/heads/main\n")
    return found


def leave(path: Path, *, age_s: float = OLD_S + 1) -> Path:
    """A lock as a git leaves it that is killed so long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    made_at = time.time() - age_s
    os.utime(path, (made_at, made_at))
    return path


def cleared(git_dir: Path, *, older_than_s: float = OLD_S) -> list[Path]:
    return [Path(path) for path in clear(git_dir, older_than_s=older_than_s)]


@contextmanager
def git_in(folder: Path, *args: str) -> Iterator[None]:
    """A git that is at work in a folder."""
    argv = ["git", *args, "cat-file", "--batch"]
    running = subprocess.Popen(argv, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if not args:
        wait_for(lambda: git_locks.is_git_at_work(folder), "git to be at work")
    try:
        yield
    finally:
        running.communicate(timeout=HANG_S)


@pytest.mark.parametrize("kind", KINDS)
def test_lock_of_every_kind_that_no_git_holds_is_removed(git_dir: Path, kind: str) -> None:
    lock = leave(git_dir / kind)
    assert cleared(git_dir) == [lock]
    assert not lock.exists()


@pytest.mark.parametrize("kind", ["config.lock", "packed-refs.lock", "refs/heads/main.lock"])
def test_locks_of_a_bare_repository_are_removed(repository: Repository, kind: str) -> None:
    lock = leave(repository.bare / kind)
    assert cleared(repository.bare) == [lock]


def test_young_lock_stays(git_dir: Path) -> None:
    young = leave(git_dir / "config.lock", age_s=OLD_S - 30)
    of_the_future = leave(git_dir / "index.lock", age_s=-3600)
    assert cleared(git_dir) == []
    assert young.exists()
    assert of_the_future.exists()


def test_lock_that_a_process_has_open_stays(git_dir: Path) -> None:
    held, dead = git_dir / "config.lock", leave(git_dir / "refs/heads/main.lock")
    with held.open("w"):
        leave(held)
        assert cleared(git_dir) == [dead]
    assert cleared(git_dir) == [held]


@pytest.mark.parametrize("place", ["clone", "harb-7", "clone/.git"])
def test_lock_that_a_git_at_work_may_have_made_stays(git_dir: Path, place: str) -> None:
    """`git commit` holds the index with no file open while its editor is."""
    folder = git_dir.parents[1] / place
    with git_in(folder):
        lock = git_dir / "index.lock"
        lock.touch()
        assert cleared(git_dir, older_than_s=0) == []
    wait_for(lambda: cleared(git_dir, older_than_s=0) == [lock], "the end of git")


def test_lock_of_the_repository_that_a_git_elsewhere_names_stays(
    git_dir: Path, tmp_path: Path
) -> None:
    with git_in(tmp_path, f"--git-dir={git_dir}"):
        wait_for(lambda: git_locks.is_git_at_work(git_dir), "git to be at work")
        lock = git_dir / "packed-refs.lock"
        lock.touch()
        assert cleared(git_dir, older_than_s=0) == []


def test_git_that_has_begun_after_the_lock_was_made_keeps_nothing(git_dir: Path) -> None:
    """Else an agent that tries again and again would keep the very lock that stops it."""
    lock = leave(git_dir / "index.lock")
    with git_in(git_dir.parent):
        assert cleared(git_dir) == [lock]


def test_git_of_another_repository_keeps_nothing(git_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    git(tmp_path / "other", "init", "-q")
    with git_in(tmp_path / "other"):
        lock = git_dir / "index.lock"
        lock.touch()
        wait_for(lambda: cleared(git_dir, older_than_s=0) == [lock], "no other git")


def test_lock_that_was_made_anew_since_it_was_seen_stays(git_dir: Path) -> None:
    path = leave(git_dir / "config.lock")
    (seen,) = git_locks.find_locks(git_dir)
    path.rename(path.with_name("gone"))
    leave(path)
    assert not git_locks.remove(seen)
    assert path.exists()
    (seen,) = git_locks.find_locks(git_dir)
    path.touch()
    assert not git_locks.remove(seen)
    path.unlink()
    assert not git_locks.remove(seen)


def test_two_that_clear_at_once_do_not_get_in_each_others_way(git_dir: Path) -> None:
    """The slower one of two would remove what a git has locked since the other one's removal."""
    from sm.store.lock import try_hold_folder

    lock = leave(git_dir / "config.lock")
    with try_hold_folder(git_dir) as ours:
        assert ours
        assert cleared(git_dir) == []
    assert cleared(git_dir) == [lock]


@pytest.mark.parametrize("kind", ["a folder", "a link", "a pipe"])
def test_what_is_no_lock_of_git_stays(git_dir: Path, kind: str) -> None:
    path = git_dir / "refs/heads/x.lock"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(git_dir / "config")
    os.utime(path, (1, 1), follow_symlinks=False)
    hook = leave(git_dir / "hooks/pre-commit.lock")
    reflog = leave(git_dir / "logs/refs/heads/x.lock")
    assert cleared(git_dir) == []
    assert os.path.lexists(path)
    assert hook.exists()
    assert reflog.exists()


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("config.lock", ("config", "a.b", "c")),
        ("packed-refs.lock", ("pack-refs", "--all")),
        ("HEAD.lock", ("checkout", "-q", "--detach")),
        ("index.lock", ("reset", "-q", "--hard")),
        ("refs/heads/main.lock", ("update-ref", "refs/heads/main", "HEAD~0", "")),
    ],
)
def test_git_that_failed_at_a_lock_works_once_it_is_cleared(
    git_dir: Path, kind: str, args: tuple[str, ...]
) -> None:
    """So that the table above is what git itself goes by."""
    (git_dir.parent / "more.txt").touch()
    git(git_dir.parent, "add", "-A")
    git(git_dir.parent, "commit", "-q", "-m", "more")
    leave(git_dir / kind)
    if args[0] == "update-ref":
        args = ("update-ref", "refs/heads/main", git(git_dir.parent, "rev-parse", "HEAD~1"))
    argv = ["git", "-C", str(git_dir.parent), *args]
    assert subprocess.run(argv, capture_output=True, check=False).returncode
    assert cleared(git_dir)
    git(git_dir.parent, *args)


def test_folder_that_all_worktrees_share_is_known_from_each(git_dir: Path) -> None:
    for name in ("clone", "harb-7"):
        assert Git(git_dir.parents[1] / name).common_dir() == git_dir
