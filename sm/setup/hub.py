"""Hub, the bare repository that agents push to, and the clone's configuration for it.

`sm init` has both made: the work of agents leaves the clone, and arrives in it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from sm.adapters import lfs
from sm.adapters.forge.local.repository import is_bare
from sm.adapters.git import Git
from sm.adapters.git_call import call
from sm.adapters.process import ANY_CODE
from sm.base.errors import SmError, UsageError
from sm.base.redact import redact
from sm.setup import discover
from sm.setup.discover import HUB, FoundRemote
from sm.setup.repository import is_relative

SEED = "refs/sm/seed"
"""Ref that holds in a new hub what a partial clone lacks, until the branch is there."""

COPY_S = 3600.0
"""Time for the first copy of a repository, which may be large, in seconds."""


class Hub(Struct, frozen=True):
    """Bare repository that agents push to.

    `remote` is its name in the clone, `is_new` whether there is no such repository yet, `is_named`
    whether the clone has the remote all the same, `beside` the remote of the clone's origin, if
    that is another one.
    """

    remote: str
    bare: Path
    is_new: bool
    beside: FoundRemote | None = None
    is_named: bool = False


def locate_hub(repo: Path) -> Path:
    """Return the folder for the hub and the forge: beside the clone."""
    return repo.with_name(f"{repo.name}-hub")


def locate_bare(repo: Path) -> Path:
    """Return the folder for the bare repository that agents push to."""
    return locate_hub(repo) / "repo.git"


def choose_hub(repo: Path, remotes: tuple[FoundRemote, ...], wanted: str | None) -> Hub:
    """Choose the repository that agents push to: a bare local remote, else a new one.

    Raises:
        UsageError: the wanted remote cannot be the hub.

    """
    named = {remote.name: remote for remote in remotes}
    if wanted is None:
        if remotes and (bare := remotes[0].bare):
            return Hub(remotes[0].name, bare, is_new=False)
        wanted = HUB if remotes else "origin"
    elif (remote := named.get(wanted)) and remote.bare:
        return Hub(wanted, remote.bare, is_new=False)
    if (remote := named.get(wanted)) and remote.url == str(locate_bare(repo)):
        beside = next((one for one in remotes if one.name != wanted), None)
        return Hub(wanted, locate_bare(repo), is_new=True, beside=beside, is_named=True)
    if wanted in named:
        raise UsageError(
            f"remote '{wanted}' is no bare repository on this machine, which the embedded forge "
            "needs: give --remote a name that is not taken, to have one made"
        )
    return Hub(wanted, locate_bare(repo), is_new=True, beside=remotes[0] if remotes else None)


def choose_primary_branch(repo: Path, hub: Hub) -> str | None:
    """Return the branch to start from, as the clone's original remote has it."""
    if hub.beside is not None:
        return discover.find_primary_branch(repo, hub.beside.name)
    return discover.find_primary_branch(repo, None if hub.is_new else hub.remote)


def check_branch(repo: Path, hub: Hub, primary: str) -> None:
    """Refuse a hub that is there and lacks the primary branch.

    Raises:
        UsageError: it lacks the branch; the message says what helps.

    """
    ref = f"refs/heads/{primary}"
    if ref not in Git(repo).ls_remote(hub.remote, ref):
        raise UsageError(
            f"remote '{hub.remote}' has no branch '{primary}': "
            f"{discover.advise_on_branch(repo, hub.remote, primary)}"
        )


def find_source(repo: Path, hub: Hub, primary: str) -> str:
    """Return the clone's ref for the primary branch: its own, unless the remote's is ahead.

    Raises:
        UsageError: there is no such branch.

    """
    git, own = Git(repo), f"refs/heads/{primary}"
    theirs = f"refs/remotes/{hub.beside.name}/{primary}" if hub.beside else own
    if git.rev_parse(own) is None and git.rev_parse(theirs) is None:
        raise UsageError(f"'{repo}' has no branch '{primary}': see --primary-branch")
    if git.rev_parse(theirs) and (git.rev_parse(own) is None or git.is_ancestor(own, theirs)):
        return theirs
    return own


def make_hub(repo: Path, hub: Hub, primary: str) -> Iterator[str]:
    """Make the hub and its remote; yield a line for each.

    Raises:
        SmError: git failed, or the hub's branch has another project's history.

    """
    # We fetch instead of push: then no hook of the user's clone runs, and tags come along.
    # Other branches stay behind: here they would look like work on an issue.
    refs = (f"{find_source(repo, hub, primary)}:refs/heads/{primary}", "refs/tags/*:refs/tags/*")
    if not _holds(repo, hub, primary):
        hub.bare.mkdir(parents=True, exist_ok=True)
        objects = call(repo, "rev-parse", "--show-object-format").stdout.strip()
        options = (f"--object-format={objects}", f"--initial-branch={primary}", "--template=")
        call(hub.bare, "init", "--quiet", "--bare", *options)
        _fill_up(repo, hub, primary)
        fetch = ("fetch", "--quiet", "--no-write-fetch-head", "--update-shallow", "--")
        call(hub.bare, *fetch, str(repo), *refs, timeout_s=COPY_S)
        call(hub.bare, "update-ref", "-d", SEED)
        yield f"made the bare repository '{hub.bare}'"
    if not hub.is_named:
        call(repo, "remote", "add", hub.remote, str(hub.bare))
    Git(repo).fetch_branch(hub.remote, primary)
    if not hub.is_named:
        yield f"added it to '{repo}' as remote '{hub.remote}'"
    beside = hub.beside.name if hub.beside else ""
    yield from _bring_large_files(repo, hub.remote, primary, beside)


def _holds(repo: Path, hub: Hub, primary: str) -> bool:
    """Say whether an earlier run has left the hub with the primary branch.

    Raises:
        SmError: the hub's branch has another project's history.

    """
    if not is_bare(hub.bare):
        return False
    git = Git(hub.bare)
    held = git.rev_parse(f"refs/heads/{primary}")
    if held is None:
        return False
    source = find_source(repo, hub, primary)
    git.fetch(str(repo), source)
    ours = Git(repo).rev_parse(source)
    if ours is None or git.merge_base(held, ours) is None:
        raise SmError(f"'{hub.bare}' holds another project's history: move it away")
    return True


def _fill_up(repo: Path, hub: Hub, primary: str) -> None:
    """Give the hub what a clone without all contents (a partial clone) cannot give it.

    Git serves no object from such a clone that it has still to fetch itself.

    Raises:
        SmError: the contents cannot be fetched.

    """
    if not (url := _find_promisor(repo)):
        return
    args = ("fetch", "--quiet", "--no-write-fetch-head", "--no-tags", "--", url)
    refs = (f"+refs/heads/{primary}:{SEED}", "refs/tags/*:refs/tags/*")
    at_hub = f"--git-dir={hub.bare}"
    try:  # in the clone, where a relative path begins
        call(repo, at_hub, *args, *refs, timeout_s=COPY_S)
    except SmError as error:
        raise SmError(
            f"'{repo}' is a partial clone, and what it lacks cannot be fetched from "
            f"'{redact(url)}': {error.message}"
        ) from error


def _find_promisor(repo: Path) -> str:
    """Return the URL that a clone without all contents fetches the rest from; '' for none."""
    args = ("config", "--name-only", "--get-regexp", r"^remote\..*\.promisor$")
    said = call(repo, *args, accept=(0, 1)).lines
    names = [line.removeprefix("remote.").removesuffix(".promisor") for line in said if line]
    return Git(repo).setting(f"remote.{names[0]}.url") if names else ""


def _bring_large_files(repo: Path, hub: str, primary: str, beside: str) -> Iterator[str]:
    """Bring the files of Git LFS on the primary branch to the hub: no fetch of git carries them."""
    ref = f"refs/remotes/{hub}/{primary}"
    if not lfs.is_used(repo, ref) or not lfs.is_installed():
        return  # sm doctor says what is missing
    if call(repo, "config", "--get", "lfs.url", accept=tuple(ANY_CODE)).code == 0:
        return
    lfs.carry(Git(repo), beside, hub, ref)
    yield f"brought the files of Git LFS to '{hub}'"


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


def spell_pull(repo: Path, hub: Hub, primary: str) -> str:
    """Spell the command that brings what agents have merged into the clone."""
    git, upstream = Git(repo), f"branch.{primary}"
    at_hub = git.setting(f"{upstream}.remote") == hub.remote
    if at_hub and git.setting(f"{upstream}.merge") == f"refs/heads/{primary}":
        return "git pull"
    return shlex.join(("git", "pull", hub.remote, primary))
