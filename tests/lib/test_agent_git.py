"""`lib/agent/git`: the stash of the clone is left alone, and all else is git's own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.helpers import REPOSITORY, Repository, git

SHIMS = REPOSITORY / "lib" / "agent"


class Place:
    """A clone with a stash of its person's, and a worktree of it with a change."""

    def __init__(self, repository: Repository, folder: Path) -> None:
        self.clone, self.worktree = repository.clone, folder / "work tree"
        (self.clone / "README.md").write_text("the person's\n")
        git(self.clone, "stash", "push", "--message=mine")
        git(self.clone, "worktree", "add", "-q", str(self.worktree), "-b", "fix/1")
        (self.worktree / "README.md").write_text("the agent's\n")

    def call(self, *args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        path = f"{SHIMS}:{os.environ['PATH']}"
        return subprocess.run(
            ["git", *args],
            cwd=cwd or self.worktree,
            env=os.environ | {"PATH": path, "SM_CLONE": str(self.clone)},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def stash(self) -> list[str]:
        return git(self.clone, "stash", "list").splitlines()


@pytest.fixture
def place(repository: Repository, tmp_path: Path) -> Place:
    return Place(repository, tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        "stash",
        "stash push",
        "stash -u",
        "stash save x",
        "stash pop",
        "stash apply stash@{0}",
        "stash drop",
        "stash clear",
        "stash branch other",
        "--no-pager stash",
        "-c core.pager=cat stash pop",
        "--git-dir=.git stash pop",
    ],
)
def test_what_changes_the_stash_or_takes_from_it_is_refused(place: Place, words: str) -> None:
    args = [one.replace("=.git", f"={place.clone}/.git") for one in words.split()]
    before = place.stash
    done = place.call(*args)
    assert (done.returncode, done.stdout) == (1, "")
    assert "git reset --soft HEAD~1" in done.stderr
    assert place.stash == before
    assert (place.worktree / "README.md").read_text() == "the agent's\n"


def test_the_clone_itself_is_meant_from_wherever_it_is_called(place: Place, tmp_path: Path) -> None:
    assert place.call("-C", str(place.clone), "stash", "pop", cwd=tmp_path).returncode == 1
    assert place.call("stash", "pop", cwd=place.clone).returncode == 1
    assert len(place.stash) == 1


def test_who_only_looks_is_shown_it(place: Place) -> None:
    assert "mine" in place.call("stash", "list").stdout
    assert place.call("stash", "show").returncode == 0
    made = place.call("stash", "create")
    assert made.returncode == 0
    assert len(made.stdout.strip()) == 40
    assert len(place.stash) == 1


def test_another_repository_has_its_own(place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(place.clone), str(other))
    (other / "README.md").write_text("more\n")
    assert place.call("stash", cwd=other).returncode == 0
    assert place.call("-C", str(other), "stash", "pop").returncode == 0
    assert (other / "README.md").read_text() == "more\n"


def test_all_else_is_gits_own(place: Place) -> None:
    assert place.call("commit", "--all", "--message=stash").returncode == 0
    assert place.call("log", "-1", "--format=%s").stdout == "stash\n"
    assert place.call("branch", "stash").returncode == 0
    failed = place.call("nothing")
    assert failed.returncode == 1
    assert "not a git command" in failed.stderr
    assert place.call().returncode == git_code(place)


def git_code(place: Place) -> int:
    return subprocess.run(["git"], cwd=place.worktree, capture_output=True, check=False).returncode


def test_a_machine_without_git_is_told(place: Place) -> None:
    shell = Path("/bin/bash")
    done = subprocess.run(
        [str(shell), str(SHIMS / "git"), "status"],
        env={"PATH": str(SHIMS)},
        cwd=place.worktree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (127, "sm: there is no git on PATH\n")
