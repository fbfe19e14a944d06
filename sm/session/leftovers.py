"""What a killed git leaves in a worktree, cleared away once it is certain that no git is at work.

Git's locks are files: they outlive a git that is killed, and every later one stops at them.
"""

from __future__ import annotations

from sm.adapters import gitlocks
from sm.adapters.git import Git, WorktreeEntry
from sm.adapters.gitcall import GitLockedError

INITIALIZING = "initializing"
"""Git's reason for the lock that a worktree has while it is made."""


def mend(tree: Git, entry: WorktreeEntry) -> None:
    """Remove dead locks of the worktree, and finish one that was being made when git was killed.

    Raises:
        GitLockedError: a git is at work in it, or it cannot be known.

    """
    home = tree.git_dir()
    locks = gitlocks.locks(home)
    unfinished = entry.locked == INITIALIZING
    if not locks and not unfinished:
        return
    if gitlocks.git_at_work(entry.path) or len(gitlocks.dead(locks, [entry.path])) < len(locks):
        what = locks[0].path if locks else entry.path
        raise GitLockedError(
            f"'{what}' is in use by a git at work in '{entry.path}': try again when it is done"
        )
    for lock in locks:
        gitlocks.remove(lock)
    if unfinished:
        # Nobody has worked in it yet: what its checkout did not reach is only missing.
        tree.restore()
        tree.unlock_worktree(entry.path)


def forget_missing(git: Git, entry: WorktreeEntry) -> None:
    """Drop git's record of a worktree whose folder is gone or empty; of this one only.

    `git worktree prune` would drop those of the user that are merely not mounted, too.
    """
    if entry.locked == INITIALIZING:
        git.unlock_worktree(entry.path)
    if entry.path.is_dir():
        entry.path.rmdir()
    git.remove_worktree(entry.path)
