"""Settles in the clone, for `sm init`, that the work of agents leaves it and arrives in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from sm.adapters import lfs
from sm.adapters.git import Git
from sm.adapters.git_call import call
from sm.adapters.process import ANY_CODE
from sm.setup.repository import is_relative


class Mending(Struct, frozen=True):
    """Change of the clone's configuration: what it is for, and what makes it."""

    what: str
    make: Callable[[], None]


def list_changes(repo: Path, remote: str, primary: str) -> Iterator[Mending]:
    """Yield what has to be settled in the clone; nothing at a second run."""
    yield from _absolute(repo, remote, push=False)
    yield from _absolute(repo, remote, push=True)
    yield from _upstream(repo, remote, primary)


def _absolute(repo: Path, remote: str, *, push: bool) -> Iterator[Mending]:
    """Mend a path that begins at the clone: it leads elsewhere from a worktree, and a submodule."""
    name = f"remote.{remote}.{'pushurl' if push else 'url'}"
    url = Git(repo).setting(name)
    if is_relative(url) and (repo / url).exists():
        path = os.path.normpath(repo / url)
        yield Mending(
            f"remote '{remote}' gets its whole path, '{path}', which holds in worktrees, too",
            lambda: _configure(repo, name, path),
        )


def _upstream(repo: Path, remote: str, primary: str) -> Iterator[Mending]:
    """Track the remote's branch, so that `git pull` brings what agents have merged."""
    git = Git(repo)
    if git.rev_parse(f"refs/heads/{primary}") and not git.setting(f"branch.{primary}.remote"):
        yield Mending(
            f"branch '{primary}' gets '{remote}/{primary}' as its upstream: git pull brings what "
            "agents have merged",
            lambda: _track(repo, remote, primary),
        )


def _track(repo: Path, remote: str, primary: str) -> None:
    _configure(repo, f"branch.{primary}.remote", remote)
    _configure(repo, f"branch.{primary}.merge", f"refs/heads/{primary}")


def _configure(repo: Path, name: str, value: str) -> None:
    call(repo, "config", "--replace-all", name, value)


def find_promisor(repo: Path) -> str:
    """Return the URL that a clone without all contents fetches the rest from; '' for none."""
    args = ("config", "--name-only", "--get-regexp", r"^remote\..*\.promisor$")
    said = call(repo, *args, accept=(0, 1)).lines
    names = [line.removeprefix("remote.").removesuffix(".promisor") for line in said if line]
    return Git(repo).setting(f"remote.{names[0]}.url") if names else ""


def bring_large_files(repo: Path, hub: str, primary: str, beside: str) -> Iterator[str]:
    """Bring the files of Git LFS on the primary branch to the hub: no fetch of git carries them."""
    ref = f"refs/remotes/{hub}/{primary}"
    if not lfs.is_used(repo, ref) or not lfs.is_installed():
        return  # sm doctor says what is missing
    if call(repo, "config", "--get", "lfs.url", accept=tuple(ANY_CODE)).code == 0:
        return
    lfs.carry(Git(repo), beside, hub, ref)
    yield f"brought the files of Git LFS to '{hub}'"
