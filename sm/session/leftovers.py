"""What a killed git leaves in a worktree, cleared away once it is certain that no git is at work.

Git's locks are files: they outlive a git that is killed, and every later one stops at them.
"""

from __future__ import annotations

import os
from pathlib import Path

from sm.adapters.git import Git, WorktreeEntry
from sm.adapters.gitcall import GitLockedError

PROC = Path("/proc")
LOCKS = ("index.lock", "HEAD.lock")
INITIALIZING = "initializing"
"""Git's reason for the lock that a worktree has while it is made."""


def mend(tree: Git, entry: WorktreeEntry) -> None:
    """Remove dead locks of the worktree, and finish one that was being made when git was killed.

    Raises:
        GitLockedError: a git is at work in it, or it cannot be known.

    """
    home = tree.git_dir()
    locks = [home / name for name in LOCKS if (home / name).exists()]
    unfinished = entry.locked == INITIALIZING
    if not locks and not unfinished:
        return
    if git_at_work(entry.path):
        what = locks[0] if locks else entry.path
        raise GitLockedError(
            f"'{what}' is in use by a git at work in '{entry.path}': try again when it is done"
        )
    for lock in locks:
        lock.unlink(missing_ok=True)
    if unfinished:
        # Nobody has worked in it yet: what its checkout did not reach is only missing.
        tree.restore()
        tree.unlock_worktree(entry.path)


def git_at_work(folder: Path) -> bool:
    """Whether a git of any user runs in `folder` or names it; True where that is not known."""
    place = os.path.realpath(folder)
    try:
        pids = [name for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 - names only
    except OSError:
        return True
    return any(_works_in(PROC / pid, place) for pid in pids)


def _works_in(process: Path, place: str) -> bool:
    try:
        if not (process / "comm").read_text().startswith("git"):
            return False
        cwd = os.path.realpath(process / "cwd")
        argv = (process / "cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError:
        return True
    return cwd == place or cwd.startswith(place + "/") or os.fsencode(place) in argv


def forget_missing(git: Git, entry: WorktreeEntry) -> None:
    """Drop git's record of a worktree whose folder is gone or empty; of this one only.

    `git worktree prune` would drop those of the user that are merely not mounted, too.
    """
    if entry.locked == INITIALIZING:
        git.unlock_worktree(entry.path)
    if entry.path.is_dir():
        entry.path.rmdir()
    git.remove_worktree(entry.path)
