"""Which hooks run in git calls of `sm`: real git, with a hook for each name that it knows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.adapters import git_snapshot
from sm.adapters.forge.local.repository import BareRepository
from sm.adapters.git import Git
from sm.adapters.git_call import call
from sm.adapters.git_push import ABSENT, Update
from tests.helpers import Repository, git

NAMES = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit"),
    *("post-merge", "post-checkout", "post-rewrite", "pre-push", "pre-rebase", "pre-auto-gc"),
    *("reference-transaction", "post-index-change"),
)


class Clone:
    """A clone with every hook in a folder, and what has run of them."""

    def __init__(self, repository: Repository, log: Path) -> None:
        self.bare, self.clone, self.log = repository.bare, repository.clone, log
        self.git, self.tree = Git(repository.clone), log.with_name("tree")
        self.first = git(self.clone, "rev-parse", "HEAD")

    def put_hooks(self, folder: Path) -> None:
        """Write one hook of each name."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            (folder / name).write_text(f"#!/bin/sh\necho {name} >>'{self.log}'\n")
            (folder / name).chmod(0o755)

    def bring_hooks(self) -> None:
        """Have the branch bring them, so that each worktree has them."""
        self.put_hooks(self.clone / ".husky")
        git(self.clone, "add", ".husky")
        git(self.clone, "commit", "-qm", "hooks")
        git(self.clone, "push", "-q", "origin", "HEAD:main", "HEAD:fix/7")
        git(self.clone, "branch", "fix/7")

    def ran(self) -> list[str]:
        """Names of the hooks that ran, each once."""
        return sorted(set(self.log.read_text().split())) if self.log.exists() else []


@pytest.fixture
def clone(repository: Repository, tmp_path: Path) -> Clone:
    return Clone(repository, tmp_path / "log")


def push(clone: Clone) -> None:
    head = git(clone.clone, "rev-parse", "HEAD")
    clone.git.push("origin", Update("refs/heads/made", head, ABSENT), verify=True)


def fetch(clone: Clone) -> None:
    git(clone.clone, "update-ref", "-d", "refs/remotes/origin/main")
    clone.log.unlink(missing_ok=True)
    clone.git.fetch_branch("origin", "main")


def branches(clone: Clone) -> None:
    head = git(clone.clone, "rev-parse", "HEAD")
    clone.git.create_branch("made", head)
    clone.git.move_branch("made", clone.first, head)
    clone.git.delete_branch("made", clone.first)


def worktree(clone: Clone) -> None:
    clone.git.add_worktree(clone.tree, "fix/7")
    (clone.tree / "new").write_text("x\n")
    at = clone.git.at(clone.tree)
    at.status()
    assert git_snapshot.take(at, "fix/7")
    at.restore()
    clone.git.remove_worktree(clone.tree, force=True)


def checkout(clone: Clone) -> None:
    head = git(clone.clone, "rev-parse", "HEAD")
    git(clone.clone, "-c", "core.hooksPath=/dev/null", "branch", "old", clone.first)
    clone.git.switch_to("old")
    git(clone.clone, "-c", "core.hooksPath=/dev/null", "switch", "-q", "old")
    clone.git.forward(head)


def others(clone: Clone) -> None:
    call(clone.clone, "branch", "--force", "--no-track", "made", clone.first)
    call(clone.clone, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach")
    call(clone.clone, "commit", "--quiet", "--allow-empty", "--message=x")


CALLS: dict[Callable[[Clone], None], str] = {
    push: "pre-push",
    fetch: "reference-transaction",
    branches: "reference-transaction",
    worktree: "post-checkout",
    checkout: "post-checkout",
    others: "post-commit",
}
"""Calls of ours, and a hook that git runs in each of them where it is a person's own."""


@pytest.mark.parametrize("called", CALLS, ids=lambda called: called.__name__)
@pytest.mark.parametrize("place", [".husky", "./.husky/", "{clone}/.husky"])
def test_no_hook_that_a_branch_brings_runs(
    called: Callable[[Clone], None], place: str, clone: Clone
) -> None:
    clone.bring_hooks()
    git(clone.clone, "config", "core.hooksPath", place.format(clone=clone.clone))
    called(clone)
    assert clone.ran() == []


@pytest.mark.parametrize("called", CALLS, ids=lambda called: called.__name__)
@pytest.mark.parametrize("place", ["", "{clone}/.git/hooks", "~/hooks", "{beside}"])
def test_a_persons_own_hook_runs(called: Callable[[Clone], None], place: str, clone: Clone) -> None:
    clone.bring_hooks()
    own = {"": clone.clone / ".git/hooks", "~/hooks": Path.home() / "hooks"}
    path = place.format(clone=clone.clone, beside=clone.log.with_name("hooks"))
    clone.put_hooks(own.get(place, Path(path)))
    if place:
        git(clone.clone, "config", "core.hooksPath", path)
    clone.log.unlink(missing_ok=True)
    called(clone)
    assert CALLS[called] in clone.ran()


def test_hub_runs_no_hook_of_the_folder_that_sm_is_in(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git looks for a relative path where it was called, as it does not go into a bare one."""
    clone.bring_hooks()
    git(clone.clone, "config", "--global", "core.hooksPath", ".husky")
    monkeypatch.chdir(clone.clone)
    bare = BareRepository(clone.bare)
    bare.git("update-ref", "refs/heads/made", clone.first)
    bare.check_out(clone.first, clone.tree)
    assert clone.ran() == []


def test_hook_of_the_remote_still_runs(clone: Clone) -> None:
    """What switches hooks off is for this git alone, not for the one that receives a push."""
    clone.bring_hooks()
    git(clone.clone, "config", "core.hooksPath", ".husky")
    (hook := clone.bare / "hooks/pre-receive").write_text(f"#!/bin/sh\necho hub >'{clone.log}'\n")
    hook.chmod(0o755)
    push(clone)
    assert clone.ran() == ["hub"]


def test_call_that_runs_no_hook_asks_for_no_setting(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most calls of a pass are of this kind, and a second process would double their time."""
    log = clone.log.with_name("trace")
    clone.bring_hooks()
    program = clone.log.with_name("bin")
    program.mkdir()
    (program / "git").write_text(
        f'#!/bin/sh\necho "$*" >>\'{log}\'\nexec {shutil.which("git")} "$@"\n'
    )
    (program / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{program}:{os.environ['PATH']}")
    clone.git.rev_parse("HEAD")
    clone.git.ls_remote("origin")
    assert "core.hooksPath" not in log.read_text()
    clone.git.create_branch("made", clone.first)
    assert log.read_text().count("core.hooksPath") == 1
