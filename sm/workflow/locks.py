"""Locks that killed gits have left in a project's repositories: removed, and said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sm.adapters import gitlocks
from sm.workflow.context import Context


def clear(ctx: Context, session: str = "") -> Iterator[str]:
    """Remove the dead locks of the clone, its worktrees, and the forge's repository; a line each.

    `session` is the one that a lock has stopped; without it, each is told of the session in whose
    worktree it was.

    Raises:
        SmError: the forge or the clone cannot be used.

    """
    for git_dir in (ctx.forge.repository.path, ctx.git.common_dir()):
        for lock in gitlocks.clear(git_dir, [ctx.project.repo]):
            ctx.record("lock", session or _owner(ctx, Path(lock)), lock)
            yield f"removed '{lock}', which a killed git had left behind"


def _owner(ctx: Context, lock: Path) -> str:
    """The session in whose worktree the lock was, '' where it was in none."""
    for session in ctx.sessions():
        file = session.worktree / ".git"
        if file.is_file() and lock.is_relative_to(ctx.git.at(session.worktree).git_dir()):
            return session.name
    return ""
