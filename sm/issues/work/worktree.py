"""Worktree of an issue: made or adopted, and removed only if nothing in it can be lost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from sm.adapters import lfs, submodules
from sm.adapters.git import Git, WorktreeEntry
from sm.adapters.git_call import NoSuchBranchError
from sm.adapters.process import CommandError
from sm.adapters.procfs import find_at_terminals, read_name
from sm.base.errors import SmError
from sm.base.issue_id import IssueId
from sm.base.text import one_line
from sm.config.schema import ProjectSettings
from sm.issues.work import leftovers
from sm.store.failpoint import crash_point
from sm.store.files import follow_links

NAMED = 3
"""Greatest number of files or commits that a refusal lists."""


class WorktreeError(SmError):
    """The worktree cannot be made; a person must move what is in the way."""


class Worktree(Struct, frozen=True):
    """Worktree ready for work; `note` says what a person might want to know."""

    path: Path
    note: str = ""


class Removed(Struct, frozen=True):
    """Result of a removal: nothing of the worktree is left."""

    path: Path

    def __str__(self) -> str:
        return "removed"


class UnremovedWorktree(Struct, frozen=True):
    """Worktree that still exists, and the reason."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"kept '{self.path}': {self.reason}"


def ensure(git: Git, project: ProjectSettings, issue: IssueId, *, at: str = "") -> Worktree:
    """Make the worktree of `issue` on its branch, or adopt what exists of it.

    Existing work never changes: only a clean branch moves forward to the remote's. `at` is the
    remote's commit as just seen, if known.

    Raises:
        WorktreeError: a folder, or the user's own clone, is in the way.
        NoSuchBranchError: neither the remote nor the clone has the branch.
        GitLockedError: a git that runs or was killed holds a lock.

    """
    branch, path = project.branch(issue), project.worktree(issue)
    remote = _remote_head(git, project, branch, at)
    entry = _adoptable(git, project, issue)
    if entry is not None:
        leftovers.mend(git.at(entry.path), entry)
        note = _forward(git.at(entry.path), entry, branch, remote)
        git.track(branch, project.remote)
        return Worktree(entry.path, note)
    _check_free(path)
    note = _local_branch(git, branch, remote)
    git.track(branch, project.remote)
    crash_point("worktree:before-add")
    trouble = _add(git, path, branch)
    crash_point("worktree:after-add")
    return Worktree(path, "; ".join(filter(None, (note, trouble))))


def _add(git: Git, path: Path, branch: str) -> str:
    """Check the branch out; return what its post-checkout hook complained about, or ''.

    Git makes the worktree, then runs that hook, and fails as the hook does (git-worktree(1)). If
    files cannot be checked out, git removes the worktree again.
    """
    try:
        git.add_worktree(path, branch)
    except CommandError as error:
        said = one_line(error.result.stderr.strip().rpartition("\n")[2])
        whole = (e.path for e in git.worktrees()[1:] if e.locked is None and has_files(e.path))
        if follow_links(path) not in map(follow_links, whole):
            advice = lfs.advise(error, git.repo) or (
                ": try git worktree add there yourself (sm doctor says what it knows of)"
            )
            raise WorktreeError(
                f"git cannot check '{branch}' out in a new worktree of '{git.repo}': {said}{advice}"
            ) from error
        return f"your post-checkout hook failed in it ({error.result.code}): {said}"
    return ""


def _remote_head(git: Git, project: ProjectSettings, branch: str, at: str) -> str:
    """Return the branch's commit on the remote; '' if only the clone has the branch."""
    try:
        return git.fetch_branch(project.remote, branch, at=at)
    except NoSuchBranchError:
        if git.rev_parse(f"refs/heads/{branch}") is None:
            raise
        return ""


def _adoptable(git: Git, project: ProjectSettings, issue: IssueId) -> WorktreeEntry | None:
    """Return the worktree on record for the issue, if its folder is there."""
    entry = find(git, project, issue)
    if entry is None:
        return None
    if entry == git.worktrees()[0]:
        raise WorktreeError(
            f"your clone '{entry.path}' has branch '{project.branch(issue)}' checked out: "
            "switch it to another branch"
        )
    if has_files(entry.path):
        return entry
    if entry.locked is not None and entry.locked != leftovers.INITIALIZING:
        raise WorktreeError(
            f"worktree '{entry.path}' is missing and locked ('{entry.locked}'): "
            "bring it back, or run git worktree unlock on it"
        )
    leftovers.forget_missing(git, entry)
    return None


def has_files(path: Path) -> bool:
    """Say whether the path is a folder with anything in it."""
    return path.is_dir() and any(path.iterdir())


def find(git: Git, project: ProjectSettings, issue: IssueId) -> WorktreeEntry | None:
    """Return the worktree with the issue's branch, else the one at the issue's place."""
    return _find(git.worktrees(), project, issue)


def _find(
    entries: tuple[WorktreeEntry, ...], project: ProjectSettings, issue: IssueId
) -> WorktreeEntry | None:
    here = follow_links(project.worktree(issue))
    on_branch = (e for e in entries if e.branch == project.branch(issue))
    at_place = (e for e in entries[1:] if follow_links(e.path) == here)
    return next(on_branch, None) or next(at_place, None)


def _check_free(path: Path) -> None:
    empty = path.is_dir() and not has_files(path)
    if not empty and (path.exists() or path.is_symlink()):
        raise WorktreeError(
            f"'{path}' is in the way and is no worktree of the clone: move it, "
            "or run git worktree repair on it in the clone"
        )


def _local_branch(git: Git, branch: str, remote: str) -> str:
    """Make the local branch, or move it forward while it has no commits of its own."""
    local = git.rev_parse(f"refs/heads/{branch}")
    if local is None:
        # Git cannot have `fix/7` beside `fix`.
        if other := git.find_branch_in_the_way(branch):
            raise WorktreeError(
                f"branch '{branch}' cannot exist beside '{other}' of your clone '{git.repo}': "
                f"rename that one (git branch -m {other} NEW), or set another 'branch_prefix'"
            )
        git.create_branch(branch, remote)
        return ""
    if remote and local != remote and git.is_ancestor(local, remote):
        git.move_branch(branch, remote, local)
        return ""
    return _difference(git, branch, local, remote)


def _forward(tree: Git, entry: WorktreeEntry, branch: str, remote: str) -> str:
    """Move an adopted worktree forward to the remote's commit if no work can be lost."""
    head = tree.rev_parse("HEAD") or entry.head
    if entry.branch != branch:
        return f"it is on {entry.branch or 'a detached HEAD'}, not on '{branch}': left so"
    if not remote or head == remote or not tree.is_ancestor(head, remote):
        return _difference(tree, branch, head, remote)
    if tree.status():
        return "it is behind the remote and has uncommitted changes: left so"
    tree.forward(remote)
    return ""


def _difference(git: Git, branch: str, local: str, remote: str) -> str:
    if not remote:
        return f"the remote has no branch '{branch}' any more: the local one is kept"
    if git.is_ancestor(remote, local):
        return ""
    return f"'{branch}' and the remote's have diverged: the local one is kept as it is"


class Examined(Struct, frozen=True):
    """State of an issue's worktree and of its local branch, which is at `tip`.

    `obstacle` says why we must not remove the folder, whatever is in it; '' if we may. `inner` are
    worktrees of the same clone within it, the deepest first: Claude Code makes such in
    `.claude/worktrees` (2.1.332). If git ignores them, it would remove them with the folder.
    """

    path: Path
    entry: WorktreeEntry | None
    tip: str | None
    obstacle: str = ""
    inner: tuple[WorktreeEntry, ...] = ()

    @property
    def heads(self) -> list[str]:
        """Commits of its heads."""
        inner = (one.head for one in self.inner)
        heads = (self.tip, self.entry.head if self.entry else None, *inner)
        return [sha for sha in heads if sha and sha.strip("0")]


def examine(git: Git, project: ProjectSettings, issue: IssueId) -> Examined:
    """Find the worktree of `issue`; `list_losses` says what would be lost with it."""
    entries = git.worktrees()
    entry = _find(entries, project, issue)
    path = entry.path if entry else project.worktree(issue)
    tip = git.rev_parse(f"refs/heads/{project.branch(issue)}")
    is_clone = entry is not None and entry == entries[0]
    within = [one for one in entries if entry and path in one.path.parents]
    inner = tuple(sorted(within, key=lambda one: len(one.path.parts), reverse=True))
    return Examined(path, entry, tip, _obstacle(entry, path, is_clone=is_clone), inner)


def list_losses(
    git: Git, project: ProjectSettings, issue: IssueId, found: Examined, *, merged_head: str = ""
) -> Iterator[str]:
    """Yield in words what would be lost with the worktree and its branch; remove nothing.

    Commits are safe on any branch of the remote, or in `merged_head`, the head of a merged pull
    request (after a squash no branch has it).

    Raises:
        RemoteUnreachableError: it is unknown what is pushed.
        GitLockedError: a git that runs or was killed holds a lock.

    """
    if dirty := _list_uncommitted(git, found.entry):
        yield f"it has uncommitted work: {_name_some(dirty)}"
    for one in found.inner:
        if dirty := _list_uncommitted(git, one):
            place = one.path.relative_to(found.path)
            yield f"the worktree within it at '{place}' has uncommitted work: {_name_some(dirty)}"
    if unsaved := _unsaved_submodules(git, found.entry):
        yield f"a submodule has commits that are nowhere else: {_name_some(unsaved)}"
    if lost := _list_unpushed(git, project, project.branch(issue), found.heads, merged_head):
        shas = _name_some(sha[:12] for sha in lost)
        yield f"it has commits that are on no branch of '{project.remote}': {shas}"


def remove(
    git: Git, project: ProjectSettings, issue: IssueId, *, merged_head: str = ""
) -> Removed | UnremovedWorktree:
    """Remove the worktree of `issue` and its local branch, unless it must be kept: `find_keeper`.

    Raises:
        RemoteUnreachableError, GitLockedError: as `list_losses`; nothing was removed.

    """
    found = examine(git, project, issue)
    lost = list_losses(git, project, issue, found, merged_head=merged_head)
    if reason := find_keeper(found, lost):
        return UnremovedWorktree(found.path, reason)
    return discard(git, project, issue, found)


def find_keeper(found: Examined, losses: Iterator[str]) -> str:
    """Return why a worktree must be kept: what would be lost, or who is in it; '' if it need not.

    If files would be lost, the remote is not asked about commits.
    """
    if reason := found.obstacle or next(losses, ""):
        return reason
    # A look at all processes is only for what would be removed otherwise.
    names = ", ".join(f"{read_name(one)} ({one.pid})" for one in find_at_terminals(found.path))
    return f"somebody is in it: {names}" if names else ""


def discard(
    git: Git, project: ProjectSettings, issue: IssueId, found: Examined, *, force: bool = False
) -> Removed | UnremovedWorktree:
    """Remove what was found, even if work is lost; with `force` also uncommitted files."""
    if found.obstacle:
        return UnremovedWorktree(found.path, found.obstacle)
    try:
        for one in (*found.inner, *([found.entry] if found.entry else [])):
            _remove(git, one, force=force)
    except CommandError as error:
        return UnremovedWorktree(found.path, error.message)
    crash_point("worktree:removed")
    if found.tip is not None:
        git.delete_branch(project.branch(issue), found.tip)
    # Git leaves empty folders: the worktree's, and the one that we made for all. A start that needs
    # the latter at this very moment makes it again at its next try.
    for folder in (found.path, *([] if project.worktree_root else [project.worktrees])):
        with contextlib.suppress(OSError):  # the folder is gone, or has files
            folder.rmdir()
    return Removed(found.path)


def _remove(git: Git, entry: WorktreeEntry, *, force: bool) -> None:
    if has_files(entry.path):
        # With a submodule git wants to be forced even if nothing can be lost, as was found out.
        has_submodules = submodules.has_any(git.at(entry.path).git_dir())
        git.remove_worktree(entry.path, force=force or has_submodules)
    else:
        leftovers.forget_missing(git, entry)


def _obstacle(entry: WorktreeEntry | None, path: Path, *, is_clone: bool) -> str:
    """Return why the folder has to stay, whatever is in it."""
    if entry is None:
        there = path.is_symlink() or path.is_file() or has_files(path)
        return "it is no worktree of the clone" if there else ""
    if is_clone:
        return f"it is your clone, which has branch '{entry.branch}' checked out"
    if entry.locked is not None and entry.locked != leftovers.INITIALIZING:
        return f"it is locked ('{entry.locked}')"
    return ""


def _list_uncommitted(git: Git, entry: WorktreeEntry | None) -> tuple[str, ...]:
    if entry is None or not has_files(entry.path):
        return ()
    tree = git.at(entry.path)
    leftovers.mend(tree, entry)
    return tree.status()


def _unsaved_submodules(git: Git, entry: WorktreeEntry | None) -> tuple[str, ...]:
    """List submodules whose commits would go with the worktree, which has clones of its own."""
    if entry is None or not has_files(entry.path):
        return ()
    home = git.at(entry.path).git_dir()
    if not submodules.has_any(home):
        return ()
    return tuple(submodules.list_unsaved(home, git.common_dir()))


def _list_unpushed(
    git: Git, project: ProjectSettings, branch: str, heads: list[str], merged_head: str
) -> tuple[str, ...]:
    """List the commits that would be lost, judged by what the remote has at this moment."""
    if not heads:
        return ()
    pushed = git.ls_remote(project.remote, "refs/heads/*")
    holders = [*pushed.values(), *([merged_head] if merged_head else [])]
    # Mostly the branch itself has them all, and nothing new of the remote has to be fetched.
    if not git.list_missing_from(heads, holders):
        return ()
    for name in {branch, project.primary_branch}:
        if at := pushed.get(f"refs/heads/{name}"):
            git.fetch_branch(project.remote, name, at=at)
    return git.list_missing_from(heads, holders)


def _name_some(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return ", ".join(f"'{name}'" for name in every[:NAMED]) + more
