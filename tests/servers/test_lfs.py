"""Large files on real servers: worktrees, pushes and merges (docs/FORGES.md)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters import lfs
from sm.adapters.forge.git_access import list_git_settings
from sm.adapters.forge.model import BOT, CheckState, PullState
from sm.adapters.git import Git
from sm.adapters.git_call import add_settings
from sm.adapters.lfs import LfsError
from sm.issues.work import worktree
from sm.issues.work.worktree import WorktreeError
from tests.helpers import git
from tests.servers.conftest import Servers
from tests.servers.journeys import merge
from tests.servers.programs import KINDS
from tests.servers.sides import ServerSide, server_side

CONTENT = b"a map of the harbour\n" * 200
pytestmark = pytest.mark.skipif(not lfs.is_installed(), reason="git-lfs is not installed")


class Yard:
    """A private repository with a large file on `main`, and a clone that gets in by the token."""

    def __init__(self, side: ServerSide) -> None:
        """The large file is there."""
        self.side, self.clone = side, side.hub.repository.clone
        forge = structs.replace(side.project.forge, git_access="agents")
        self.project = structs.replace(side.project, forge=forge)
        side.ask("PATCH", "", {"private": True})
        git(self.clone, "remote", "set-url", "origin", f"{side.server.url}/{side.repository}.git")
        git(self.clone, "lfs", "install", "--local")
        git(self.clone, "lfs", "track", "*.bin")
        self.commit(self.clone, "map.bin", CONTENT)
        self.push(self.clone, "main")

    @property
    def git(self) -> Git:
        """Git in the clone, as `sm` calls it."""
        return Git(self.clone, list_git_settings(self.project))

    def commit(self, folder: Path, name: str, content: bytes) -> str:
        """Commit a file; the commit."""
        (folder / name).write_bytes(content)
        git(folder, "add", ".")
        git(folder, "commit", "-qm", name)
        return git(folder, "rev-parse", "HEAD")

    def push(self, folder: Path, branch: str) -> None:
        """Push as an agent does: with the hooks of the clone, and the settings that it is given."""
        settings = list_git_settings(self.project, for_agent=True)
        line = ["git", "push", "-q", "origin", f"HEAD:{branch}"]
        env = os.environ | add_settings(os.environ, settings)
        done = subprocess.run(
            line, cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def drop_files(self) -> None:
        """The clone has no large file any more, as one that was made anew."""
        shutil.rmtree(self.clone / ".git" / "lfs")


@pytest.fixture(params=KINDS)
def yard(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Yard]:
    with server_side(servers.get(request.param), servers.name_repository(), tmp_path) as side:
        yield Yard(side)


def test_large_files_are_pushed_by_the_token_and_merged(yard: Yard) -> None:
    yard.push(yard.clone, "fix/7")
    yard.drop_files()
    tree = worktree.ensure(yard.git, yard.project, 7).path
    assert (tree / "map.bin").read_bytes() == CONTENT, "fetched by the token"
    head = yard.commit(tree, "chart.bin", CONTENT[::-1])
    branch = git(tree, "branch", "--show-current")
    yard.push(tree, branch)
    forge = yard.side.open()
    number = forge.pulls.open(branch, "main", "a", author=BOT).number
    yard.side.finish(head, CheckState.SUCCESS)
    merged = merge(forge, number, head)
    assert merged.state is PullState.MERGED
    yard.drop_files()
    yard.git.fetch_branch("origin", "main")
    assert list_files(yard, merged.merged_as) == {"map.bin": CONTENT, "chart.bin": CONTENT[::-1]}


def list_files(yard: Yard, commit: str) -> dict[str, bytes]:
    """The large files of a commit, as a checkout has them."""
    folder = yard.clone.with_name("other")
    yard.git.add_worktree(folder, commit)
    return {one.name: one.read_bytes() for one in folder.glob("*.bin")}


def test_a_worktree_without_git_lfs_says_what_to_install(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where git is set up for it; else the worktree has pointers, which doctor says."""
    yard.push(yard.clone, "fix/7")
    hide_program(tmp_path / "bin", monkeypatch)
    with pytest.raises(WorktreeError, match="install git-lfs"):
        worktree.ensure(yard.git, yard.project, 7)
    for name in ("process", "smudge", "clean", "required"):
        git(yard.clone, "config", "--unset", f"filter.lfs.{name}")
    tree = worktree.ensure(yard.git, yard.project, 7).path
    assert (tree / "map.bin").read_bytes().startswith(b"version https://git-lfs")


def hide_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a PATH with git and without git-lfs."""
    folder.mkdir()
    for name in ("git", "sh", "env", "sed", "uname", "basename"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))
    assert not lfs.is_installed()


def test_a_worktree_whose_large_files_the_server_lacks_says_so(yard: Yard) -> None:
    place = yard.side.server.git_url(yard.side.repository, BOT)
    yard.commit(yard.clone, "lost.bin", b"never pushed\n")
    git(yard.clone, "push", "-q", "--no-verify", place, "HEAD:fix/7")
    yard.drop_files()
    with pytest.raises(WorktreeError, match="were not pushed: run git lfs push --all"):
        worktree.ensure(yard.git, yard.project, 7)


def test_a_worktree_whose_large_files_the_server_refuses_says_so(yard: Yard) -> None:
    yard.push(yard.clone, "fix/7")
    yard.drop_files()
    git(yard.clone, "config", "lfs.url", f"{yard.side.server.url}/harbor/nowhere.git/info/lfs")
    with pytest.raises(WorktreeError, match="Git LFS was answered: Not Found"):
        worktree.ensure(yard.git, yard.project, 7)


def test_large_files_are_carried_by_the_token(yard: Yard) -> None:
    """As `sm sync` does it."""
    place = yard.side.server.git_url(yard.side.repository, BOT)
    yard.commit(yard.clone, "late.bin", CONTENT[::-1])
    git(yard.clone, "push", "-q", "--no-verify", place, "HEAD:fix/7")
    with pytest.raises(LfsError):
        lfs.carry(Git(yard.clone), "", "origin", "main")
    lfs.carry(yard.git, "", "origin", "main")
    yard.drop_files()
    tree = worktree.ensure(yard.git, yard.project, 7).path
    assert (tree / "late.bin").read_bytes() == CONTENT[::-1]
