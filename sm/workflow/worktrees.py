"""Worktrees that were kept when their session ended, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sm.adapters.git import WorktreeEntry
from sm.errors import SmError
from sm.foreign import read_number
from sm.session import worktree
from sm.session.registry import IssueSession
from sm.store.files import follow_links
from sm.workflow.context import Context
from sm.workflow.snapshot import Snapshot, is_open


def kept(ctx: Context, sessions: list[IssueSession]) -> dict[int, str]:
    """The worktrees of this project that no session works in: issue to path."""
    at_work = {session.issue for session in sessions}
    found = ((_issue(ctx, entry), entry.path) for entry in ctx.git.worktrees()[1:])
    return {issue: str(path) for issue, path in found if issue and issue not in at_work}


def _issue(ctx: Context, entry: WorktreeEntry) -> int:
    """The issue that a worktree was made for, by its branch, else by its place; 0: none."""
    by_branch = (entry.branch or "").removeprefix(f"{ctx.project.branch_prefix}/")
    if by_branch != entry.branch and (number := read_number(by_branch)):
        return number
    number = read_number(entry.path.name.removeprefix(f"{ctx.project.name}-"))
    return number if number and follow_links(entry.path) == _place(ctx, number) else 0


def _place(ctx: Context, issue: int) -> Path:
    return follow_links(ctx.project.worktree(issue))


def sweep(ctx: Context, seen: Snapshot, sessions: list[IssueSession]) -> Iterator[str]:
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
