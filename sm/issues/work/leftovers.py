"""Leftovers of killed gits, cleared once it is certain that no git is at work there.

Git's locks are files. They outlive a killed git, and stop every later one. A worktree that was just
being made is finished.
"""

from __future__ import annotations

from pathlib import Path

from sm.adapters import git_locks
from sm.adapters.forge.protocol import Hosting
from sm.adapters.git import Git, WorktreeEntry
from sm.adapters.git_call import GitLockedError
from sm.adapters.git_locks import Lock
from sm.sessions import registry
from sm.sessions.project import Project
from sm.store import events

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


# Locks of a project


def clear_locks(project: Project, session: str = "") -> list[str]:
    """Remove the dead locks of the clone, its worktrees, and the forge's repositories; a line each.

    `session` is the one that a lock has stopped.

    Raises:
        SmError: the forge or the clone cannot be used.

    """
    found = [lock for lock in find_locks(project) if lock.age_s >= git_locks.OLD_S]
    return [
        f"removed '{lock.path}', which a killed git had left behind"
        for lock in found
        if remove_lock(project, lock.path, session)
    ]


def find_locks(project: Project) -> list[Lock]:
    """Return the locks in the clone, its worktrees, and the forge's repositories, dead or not.

    Raises:
        SmError: the forge or the clone cannot be used.

    """
    return [lock for place in _list_places(project) for lock in git_locks.find_locks(place)]


def remove_lock(project: Project, path: str, session: str = "") -> bool:
    """Remove the lock at `path` if it is dead, and report it; False if it stays or is gone.

    Without `session` the report goes to the session of the worktree with the lock.
    """
    place = next((one for one in _list_places(project) if Path(path).is_relative_to(one)), None)
    if place is None or not git_locks.clear(place, [project.settings.repo], only=path):
        return False
    project.record(
        events.LockRemoved(session=session or _find_owner(project, Path(path)), path=path)
    )
    return True


def _list_places(project: Project) -> list[Path]:
    hosted = project.forge.git_dirs() if isinstance(project.forge, Hosting) else ()
    return [*hosted, project.git.common_dir()]


def _find_owner(project: Project, lock: Path) -> str:
    """Return the session in whose worktree the lock was, '' if it was in none."""
    for session in registry.list_for(project):
        file = session.worktree / ".git"
        if file.is_file() and lock.is_relative_to(project.git.at(session.worktree).git_dir()):
            return session.name
    return ""
