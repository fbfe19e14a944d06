"""Ends a session whose issue was settled while its state was lost."""

from __future__ import annotations

from sm.adapters.forge.model import Issue, IssueState, PullState
from sm.issues.act.effects import EFFECTS, NotNowError
from sm.issues.act.problem import SessionProblem
from sm.issues.act.refusals import REFUSALS
from sm.issues.rules.endings import CLOSE, FINISH, LET_GO, SETTLE
from sm.issues.rules.rows import Step
from sm.messages.presence import find_obstacle
from sm.sessions.history import StepVerb
from sm.sessions.plan import PlannedStep
from sm.sessions.presence_rule import Disturbance
from sm.sessions.session import IssueSession
from sm.store import events, journal

UNTOLD = frozenset({StepVerb.COMMENT, StepVerb.FORGET})
"""Verbs that are left out: people see the end on the issue, and the caller forgets the session."""


def let_go(session: IssueSession, issue: Issue) -> None:
    """End a session: first its agent, then its traces on the forge, and its claim last.

    Work that is not merged stays on its branch or in its worktree.

    Raises:
        NotNowError: a person is at its terminal; nothing was done.

    """
    if refusal := find_obstacle(session, Disturbance.END):
        raise NotNowError(SessionProblem(f"{Disturbance.END} waits", refusal))
    project = session.project
    pull = project.forge.pulls.find_newest(session.record.branch)
    merged_head = pull.head if pull and pull.state is PullState.MERGED else ""
    for step in _steps(issue, is_merged=bool(merged_head)):
        if step.verb not in UNTOLD:
            _do(session, PlannedStep(step.verb, step.text, merged_head))
    project.record(events.LetGo(session=session.name))


def _do(session: IssueSession, step: PlannedStep) -> None:
    try:
        EFFECTS[step.verb](session, step, "")
    except REFUSALS as error:  # nor does it hold up the end of a session on record
        if step.verb is StepVerb.RELEASE_CLAIM:
            raise
        told = events.Problem(session=session.name, text=f"{step.verb}: {error.message}")
        journal.record_once(session.root.journal, told)


def _steps(issue: Issue, *, is_merged: bool) -> tuple[Step, ...]:
    if issue.state is IssueState.OPEN:  # blocked
        return (Step(StepVerb.KILL), *LET_GO)
    return (*SETTLE, *FINISH) if is_merged else CLOSE
