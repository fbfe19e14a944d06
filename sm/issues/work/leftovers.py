"""Leftovers of a killed git in a worktree, cleared once it is certain that no git runs there.

Git's locks are files. They outlive a killed git, and stop every later one.
"""

from __future__ import annotations

from sm.adapters import git_locks
from sm.adapters.git import Git, WorktreeEntry
from sm.adapters.git_call import GitLockedError

INITIALIZING = "initializing"
"""Git's reason for the lock of a worktree that is being made."""


def mend(tree: Git, entry: WorktreeEntry) -> None:
    """Remove dead locks of the worktree, and finish one whose making was interrupted.

    Raises:
        GitLockedError: a git runs in it, or that cannot be ruled out.

    """
    home = tree.git_dir()
    locks = git_locks.find_locks(home)
    unfinished = entry.locked == INITIALIZING
    if not locks and not unfinished:
        return
    if git_locks.is_git_at_work(entry.path) or len(
        git_locks.select_dead(locks, [entry.path])
    ) < len(locks):
        what = locks[0].path if locks else entry.path
        raise GitLockedError(
            f"'{what}' is in use by a git at work in '{entry.path}': try again when it is done"
        )
    for lock in locks:
        git_locks.remove(lock)
    if unfinished:
        # No work has begun in it: files that the checkout did not reach are only missing.
        tree.restore()
        tree.unlock_worktree(entry.path)


def forget_missing(git: Git, entry: WorktreeEntry) -> None:
    """Drop git's record of this one worktree, whose folder is gone or empty.

    `git worktree prune` would also drop the user's worktrees on disks that are not mounted.
    """
    if entry.locked == INITIALIZING:
        git.unlock_worktree(entry.path)
    if entry.path.is_dir():
        entry.path.rmdir()
    git.remove_worktree(entry.path)
