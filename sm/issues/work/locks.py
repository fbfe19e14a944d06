"""Removes the locks that killed gits have left in a project's repositories, and reports them."""

from __future__ import annotations

from pathlib import Path

from sm.adapters import git_locks
from sm.adapters.forge.protocol import Hosting
from sm.adapters.git_locks import Lock
from sm.sessions import registry
from sm.sessions.project import Project
from sm.store import events


def clear(project: Project, session: str = "") -> list[str]:
    """Remove the dead locks of the clone, its worktrees, and the forge's repositories; a line each.

    `session` is the one that a lock has stopped.

    Raises:
        SmError: the forge or the clone cannot be used.

    """
    found = [lock for lock in find(project) if lock.age_s >= git_locks.OLD_S]
    return [
        f"removed '{lock.path}', which a killed git had left behind"
        for lock in found
        if remove(project, lock.path, session)
    ]


def find(project: Project) -> list[Lock]:
    """Return the locks there, dead or not.

    Raises:
        SmError: the forge or the clone cannot be used.

    """
    return [lock for place in _list_places(project) for lock in git_locks.find_locks(place)]


def remove(project: Project, path: str, session: str = "") -> bool:
    """Remove the lock at `path` if it is dead, and report it; False if it stays or is gone.

    Without `session` the report goes to the session of the worktree with the lock.
    """
    place = next((one for one in _list_places(project) if Path(path).is_relative_to(one)), None)
    if place is None or not git_locks.clear(place, [project.settings.repo], only=path):
        return False
    project.record(events.LockRemoved(session=session or _owner(project, Path(path)), path=path))
    return True


def _list_places(project: Project) -> list[Path]:
    hosted = project.forge.git_dirs() if isinstance(project.forge, Hosting) else ()
    return [*hosted, project.git.common_dir()]


def _owner(project: Project, lock: Path) -> str:
    """Return the session in whose worktree the lock was, '' if it was in none."""
    for session in registry.list_for(project):
        file = session.worktree / ".git"
        if file.is_file() and lock.is_relative_to(project.git.at(session.worktree).git_dir()):
            return session.name
    return ""
