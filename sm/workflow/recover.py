"""Restart an agent because a person asks for it, whatever the limits say."""

from __future__ import annotations

import time

from sm.errors import UsageError
from sm.facts import Facts
from sm.matrix import ROWS
from sm.reactions import Decision
from sm.session import plan as plans
from sm.session import registry
from sm.session.registry import IssueSession
from sm.store import lock
from sm.store.paths import session_name
from sm.store.repair import repair
from sm.workflow import monitors
from sm.workflow.compose import compose
from sm.workflow.context import Context
from sm.workflow.effects import withdraw
from sm.workflow.observe import observe
from sm.workflow.start import start


def recover(ctx: Context, issue: int) -> IssueSession:
    """End what runs for the issue and restart it from its worktree and branch.

    An issue that is unknown here is taken over, whoever holds it.

    Raises:
        UsageError: there is no such issue, or it is closed.

    """
    name = session_name(ctx.project.name, issue)
    if not ctx.root.session(name).identity.exists():
        found = ctx.forge.issue(issue)
        if found.state != "open":
            raise UsageError(f"issue #{issue} is closed: nothing to recover")
        return start(ctx, found, seize=True)
    repair(ctx.root, ctx.root.session(name))
    session = registry.of_issue(ctx.root, name)
    with lock.hold(session.dir.lock, timeout_s=120):
        _take_back(session)
        seen = observe(ctx, session)
        plans.save(session.dir, compose(ctx, session, seen, _by_hand(seen.facts)))
    ctx.record("recover", session.name, "asked for by a person")
    monitors.ensure(session)
    registry.poke(session.dir)
    return session


def _take_back(session: IssueSession) -> None:
    """Drop what is under way, and the message of it that still waits: it is decided on anew."""
    plan = plans.pending(session.dir)
    step = plans.next_step(plan, plans.receipts(session.dir)) if plan else 0
    if plan and step < len(plan.steps):
        withdraw(session, plan, step)
    plans.drop(session.dir)


def _by_hand(facts: Facts) -> Decision:
    row = next(row for row in ROWS if row.name == "recover")
    return Decision(row, f"recover-by-hand:{time.time():.3f}", facts.now)
