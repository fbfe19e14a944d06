"""Ends a session because a person asks for it: the same as the blocked label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sm.issues.reactor import react
from sm.sessions import registry
from sm.sessions.project import Context
from sm.store import events
from sm.store.paths import name_session


def kill(ctx: Context, issue: int) -> Iterator[str]:
    """Set the label, and let the matrix do the rest now; yield what happened.

    Raises:
        UsageError: the issue has no session.

    """
    session = registry.load_issue_session(ctx.root, name_session(ctx.project.name, issue))
    ctx.forge.add_label(issue, ctx.project.labels.blocked)
    ctx.record(events.Kill(session=session.name))
    react(ctx, session.name)
    if session.dir.identity.exists():
        yield f"{session.name} could not be ended yet: see sm status"
        return
    yield f"ended {session.name}; issue #{issue} is labelled {ctx.project.labels.blocked}"
    if Path(session.worktree).exists():
        yield f"its worktree has work that is nowhere else: {session.worktree}"
