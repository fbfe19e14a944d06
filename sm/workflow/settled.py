"""Ends a session whose issue was settled while its state was lost: nobody knows of it any more."""

from __future__ import annotations

from sm.forge import Issue, IssueState, PullState
from sm.history import Verb
from sm.matrix import FINISH, LET_GO, STOP
from sm.rows import Step
from sm.session.plan import PlannedStep
from sm.session.registry import IssueSession
from sm.workflow.context import Context
from sm.workflow.effects import EFFECTS

UNTOLD = frozenset({Verb.COMMENT, Verb.FORGET})
"""People know of the end, as they see the issue; who calls forgets the session."""


def let_go(ctx: Context, session: IssueSession, issue: Issue) -> None:
    """Do what ends a session: its agent goes, then what is on the forge, its claim last.

    Work that is not merged stays, on its branch or in its worktree.
    """
    pull = ctx.forge.pull_for(session.branch)
    merged_head = pull.head if pull and pull.state is PullState.MERGED else ""
    for step in _steps(issue, is_merged=bool(merged_head)):
        if step.verb not in UNTOLD:
            planned = PlannedStep(step.verb, step.text, merged_head)
            EFFECTS[step.verb](ctx, session, planned, "")
    ctx.record("let go", session.name, "it was settled while its state was lost")


def _steps(issue: Issue, *, is_merged: bool) -> tuple[Step, ...]:
    if issue.state is IssueState.OPEN:  # blocked
        return (Step(Verb.KILL), *LET_GO)
    return FINISH if is_merged else STOP
