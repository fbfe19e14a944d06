"""End a session because a person says so: the same as setting the blocked label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sm.session import registry
from sm.store.paths import session_name
from sm.workflow.context import Context
from sm.workflow.reactor import react


def kill(ctx: Context, issue: int) -> Iterator[str]:
    """Set the label and let the matrix do the rest now; yields what became of it.

    Raises:
        UsageError: the issue has no session.

    """
    session = registry.of_issue(ctx.root, session_name(ctx.project.name, issue))
    ctx.forge.add_label(issue, ctx.project.labels.blocked)
    ctx.record("kill", session.name, "asked for by a person")
    react(ctx, session.name)
    if session.dir.identity.exists():
        yield f"{session.name} could not be ended yet: see sm status"
        return
    yield f"ended {session.name}; issue #{issue} is labelled {ctx.project.labels.blocked}"
    if Path(session.worktree).exists():
        yield f"its worktree has work that is nowhere else: {session.worktree}"
