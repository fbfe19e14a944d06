"""Worktrees that were kept when their session ended, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator

from sm.errors import SmError
from sm.session import worktree
from sm.session.registry import Session
from sm.workflow.context import Context
from sm.workflow.snapshot import Snapshot, is_open


def kept(ctx: Context, sessions: list[Session]) -> dict[int, str]:
    """The worktrees of this project that no session works in: issue to path."""
    at_work = {session.branch for session in sessions}
    prefix = f"{ctx.project.branch_prefix}/"
    return {
        int(entry.branch.removeprefix(prefix)): str(entry.path)
        for entry in ctx.git.worktrees()[1:]
        if entry.branch
        and entry.branch not in at_work
        and entry.branch.startswith(prefix)
        and entry.branch.removeprefix(prefix).isdecimal()
    }


def sweep(ctx: Context, seen: Snapshot, sessions: list[Session]) -> Iterator[str]:
    """Remove those whose issue is closed and whose work is safe on the remote; a line for each."""
    for issue, path in kept(ctx, sessions).items():
        if is_open(seen, issue):
            continue
        pull = seen.pull(ctx.project.branch(issue))
        try:
            removed = worktree.remove(
                ctx.git, ctx.project, issue, merged_head=pull.head if pull else ""
            )
        except SmError as error:
            yield f"cannot remove '{path}': {error.message}"
            continue
        if isinstance(removed, worktree.Removed):
            yield f"removed the worktree of #{issue}"
