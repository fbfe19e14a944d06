"""Removes the locks that killed gits have left in a project's repositories, and says so."""

from __future__ import annotations

from pathlib import Path

from sm.adapters import git_locks
from sm.adapters.forge.protocol import Hosting
from sm.sessions import registry
from sm.sessions.project import Project
from sm.store import events


def clear(project: Project, session: str = "") -> list[str]:
    """Remove the dead locks of the clone, its worktrees, and the forge's repositories; a line each.

    `session` is the one that a lock has stopped. Without it, each line goes to the session of the
    worktree with the lock.

    Raises:
        SmError: the forge or the clone cannot be used.

    """
    lines = []
    hosted = project.forge.git_dirs() if isinstance(project.forge, Hosting) else ()
    for git_dir in (*hosted, project.git.common_dir()):
        for lock in git_locks.clear(git_dir, [project.settings.repo]):
            project.record(
                events.LockRemoved(session=session or _owner(project, Path(lock)), path=lock)
            )
            lines.append(f"removed '{lock}', which a killed git had left behind")
    return lines


def _owner(project: Project, lock: Path) -> str:
    """The session in whose worktree the lock was, '' where it was in none."""
    for session in registry.list_for(project):
        file = session.worktree / ".git"
        if file.is_file() and lock.is_relative_to(project.git.at(session.worktree).git_dir()):
            return session.name
    return ""
