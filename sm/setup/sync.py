"""Brings the primary branch of the hub and of a remote beside it to the same commit.

Agents push to the hub, people to the remote of the clone. Commits that one side lacks are carried
over, in either direction. If both have gone on, nothing changes: that needs a merge, which should
be tested like other work. A person may have it made at once, if it has no conflict.
"""

from __future__ import annotations

import shlex
from enum import StrEnum

from msgspec import Struct

from sm.adapters import lfs
from sm.adapters.forge.git_access import list_git_settings
from sm.adapters.git import Git
from sm.adapters.git_push import PushRefusedError, RefMovedError, Update
from sm.base.errors import SmError, UsageError
from sm.base.text import one_line
from sm.config.schema import ProjectSettings
from sm.setup import discover

TRANSFER_S = 3600.0
"""Time for the transfer, which may be large and slow, in seconds."""
NAMED = 3
ATTEMPTS = 3
"""Number of attempts: meanwhile an agent may merge, or a person may push."""


class Direction(StrEnum):
    """Direction in which commits must go."""

    NONE = "none"
    IN = "into the hub"
    OUT = "out of the hub"
    APART = "apart"


class CloneStanding(Struct, frozen=True):
    """Standing of the primary branch on both sides, and how many commits each side lacks."""

    hub: str
    beside: str
    branch: str
    ours: str
    theirs: str
    only_ours: int
    only_theirs: int

    @property
    def direction(self) -> Direction:
        """Direction that brings both sides together."""
        if self.only_ours and self.only_theirs:
            return Direction.APART
        if self.only_ours:
            return Direction.OUT
        return Direction.IN if self.only_theirs else Direction.NONE

    @property
    def receiver(self) -> str:
        """Remote that lacks commits."""
        return self.hub if self.direction is Direction.IN else self.beside

    @property
    def update(self) -> Update:
        """Update to push there. The remote must be where we saw it, so nothing is lost."""
        old, new = self.theirs, self.ours
        if self.direction is Direction.IN:
            old, new = new, old
        return Update(f"refs/heads/{self.branch}", new, old)


class Synced(Struct, frozen=True):
    """State before, and the carried commits, newest first, as git names them."""

    standing: CloneStanding
    commits: tuple[str, ...]


class MergeConflictError(SmError):
    """The two cannot be merged without a person or an agent; nothing was changed."""


def choose_remote(project: ProjectSettings, wanted: str | None) -> str:
    """Return the remote to exchange with: the wanted one, else the one of `discover`.

    Raises:
        UsageError: there is no such remote, or the choice is not clear.

    """
    remotes = discover.list_remotes(project.repo)
    found = wanted or discover.find_shared_remote(remotes, project.remote)
    others = [one.name for one in remotes if one.name != project.remote]
    if found in others:
        return str(found)
    if found is None and not others:
        raise UsageError(
            f"'{project.repo}' has no remote but '{project.remote}', which the agents push to: "
            "there is nothing to exchange"
        )
    known = " or ".join(f"'{name}'" for name in others) or "no other one"
    which = "which remote? name one with --remote" if wanted is None else f"no remote '{wanted}'"
    raise UsageError(f"{which}: beside '{project.remote}' there is {known}")


def look(project: ProjectSettings, remote: str) -> Synced:
    """Return how the two stand to each other, and what would be carried over.

    Raises:
        SmError: one cannot be reached or lacks the branch, or they share no history.

    """
    git, branch = Git(project.repo, list_git_settings(project)), project.primary_branch
    ours = git.fetch_branch(project.remote, branch, timeout_s=TRANSFER_S)
    theirs = git.fetch_branch(remote, branch, timeout_s=TRANSFER_S)
    if git.merge_base(ours, theirs) is None:
        raise SmError(
            f"'{remote}/{branch}' and '{project.remote}/{branch}' have no commit in common: name "
            "the right remote with --remote; in a shallow clone run 'git fetch --unshallow' first"
        )
    standing = CloneStanding(
        project.remote,
        remote,
        branch,
        ours,
        theirs,
        only_ours=git.ahead(theirs, ours),
        only_theirs=git.ahead(ours, theirs),
    )
    commits: tuple[str, ...] = ()
    if standing.direction not in (Direction.NONE, Direction.APART):
        update = standing.update
        commits = tuple(git.log_oneline(update.expected, update.new).splitlines())
    return Synced(standing, commits)


def sync(project: ProjectSettings, remote: str) -> Synced:
    """Carry over what one side lacks; nothing if they have diverged. Return what was done.

    Raises:
        PushRefusedError: the receiver does not take it.
        SmError: one of them cannot be reached, or goes on changing.

    """
    for _ in range(ATTEMPTS):
        found = look(project, remote)
        if found.standing.direction in (Direction.NONE, Direction.APART):
            return found
        try:
            _carry(project, found.standing)
        except RefMovedError:
            continue
        return found
    raise SmError(f"'{project.primary_branch}' goes on changing: try again")


def merge(project: ProjectSettings, remote: str) -> tuple[str, Synced]:
    """Merge both sides into the hub, and carry the merge over; return it, '' if none was needed.

    Raises:
        MergeConflictError: they do not go together.
        PushRefusedError: one of them does not take it; the hub may have the merge by then.
        SmError: one of them cannot be reached, or goes on changing.

    """
    for _ in range(ATTEMPTS):
        standing = look(project, remote).standing
        if standing.direction is not Direction.APART:
            return "", sync(project, remote)
        check_merge(project, standing)
        git, ref = Git(project.repo, list_git_settings(project)), f"refs/heads/{standing.branch}"
        message = f"Merge {remote}/{standing.branch} into {standing.branch}"
        made = git.make_merge(standing.ours, standing.theirs, message)
        _bring_large_files(project, standing, remote, project.remote)
        try:
            git.push(project.remote, Update(ref, made, standing.ours), timeout_s=TRANSFER_S)
        except RefMovedError:
            continue
        return made, sync(project, remote)
    raise SmError(f"'{project.primary_branch}' goes on changing: try again")


def check_merge(project: ProjectSettings, standing: CloneStanding) -> None:
    """Refuse to merge what does not go together.

    Raises:
        MergeConflictError: it names the files.

    """
    if files := Git(project.repo).find_conflicts(standing.ours, standing.theirs):
        shown = ", ".join(f"'{one_line(name)}'" for name in files[:NAMED])
        more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
        raise MergeConflictError(f"both have changed {shown}{more}: nothing was merged")


def list_remedies(project: ProjectSettings, standing: CloneStanding) -> tuple[str, ...]:
    """Return the commands that bring the two together again."""
    ours, theirs = (f"{name}/{standing.branch}" for name in (standing.hub, standing.beside))
    clone, folder = ("git", "-C", str(project.repo)), f"{project.repo}-sync"
    title = f"Merge {theirs} into {standing.branch}"
    body = f"Run git fetch {standing.beside} and git merge {theirs}; mend conflicts."
    file = ("sm", "issue", "add", "--project", project.name, title, "--body", body)
    merge = (
        ("cd", folder),
        ("git", "merge", theirs),
        ("git", "push", standing.hub, f"HEAD:{standing.branch}"),
    )
    return (
        "have it merged without a test: sm sync --merge",
        "or have an agent merge them, tested and reviewed as its other work:",
        f"  {shlex.join(file)}",
        "or merge them yourself, in a folder of its own:",
        f"  {shlex.join((*clone, 'worktree', 'add', '--detach', folder, ours))}",
        f"  {' && '.join(map(shlex.join, merge))}",
        f"  {shlex.join((*clone, 'worktree', 'remove', folder))}",
        "then run sm sync again",
    )


def _carry(project: ProjectSettings, standing: CloneStanding) -> None:
    is_out = standing.direction is Direction.OUT
    git = Git(project.repo, list_git_settings(project))
    giver = standing.hub if is_out else standing.beside
    _bring_large_files(project, standing, giver, standing.receiver)
    try:
        # A push to another machine runs the person's own hook, like a push of their own.
        git.push(standing.receiver, standing.update, verify=is_out, timeout_s=TRANSFER_S)
    except PushRefusedError as error:
        if not is_out:
            raise
        branch = shlex.quote(f"{standing.hub}/{standing.branch}:refs/heads/NAME")
        raise PushRefusedError(
            f"{error.message}: where '{standing.branch}' wants pull requests, push another branch "
            f"and open one there: git push {standing.beside} {branch}"
        ) from error


def _bring_large_files(
    project: ProjectSettings, standing: CloneStanding, giver: str, receiver: str
) -> None:
    ref = f"refs/remotes/{giver}/{standing.branch}"
    if lfs.is_installed() and lfs.is_used(project.repo, ref):
        lfs.carry(Git(project.repo, list_git_settings(project)), giver, receiver, ref)
