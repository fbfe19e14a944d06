"""Retries of a failed step: for how long, and when the next one is."""

from __future__ import annotations

import time

from msgspec import structs

from sm.adapters.forge.errors import (
    AtWorkError,
    BaseMovedError,
    MergeRefusedError,
    QueueUnknownError,
    UnknownOutcomeError,
)
from sm.base.clock import is_ahead
from sm.base.errors import SmError, TemporaryError
from sm.base.refusal import Refusal
from sm.issues.act.effects import NotNowError
from sm.issues.act.problem import REFUSALS, SessionProblem, read_problem, write_problem
from sm.sessions import pause
from sm.sessions.history import TELLING, StepVerb
from sm.sessions.plan import Plan
from sm.sessions.session import IssueSession
from sm.store import events

RETRY_S = (0.5, 300.0)
TYPING_RETRY_S = (0.5, 5.0)
"""Shortest and longest pause before another try, in seconds; it grows with the age of the obstacle.

Where hooks tell when a busy agent is free again, nothing has to be tried often. Nothing tells that
a person leaves the terminal.
"""

UNKNOWN_S = 30.0
"""Seconds for which a forge that has not answered may still be at work on what it was to write."""
OVERTAKEN = (AtWorkError, BaseMovedError, QueueUnknownError)
"""Errors after which a merge is tried later."""

ELSEWHERE = TELLING | {
    StepVerb.OPEN_PULL,
    StepVerb.RERUN_CI,
    StepVerb.MERGE,
    StepVerb.LABEL_BLOCKED,
    StepVerb.RESTORE_BACKLOG,
    StepVerb.CLEAN_LABELS,
    StepVerb.CLOSE_ISSUE,
    StepVerb.CLOSE_PULL,
    StepVerb.REMOVE_WORKTREE,
    StepVerb.DELETE_BRANCH,
    StepVerb.DELETE_EMPTY_BRANCH,
}
"""Steps that forge, remote or clone can refuse, and without which the session can go on.

The claim is not among them: if it were left behind, the issue would be taken up again.
"""
EARLY = frozenset({StepVerb.OPEN_PULL, StepVerb.NOTIFY})
REFUSED_FOR_S = 30.0
"""Seconds for which these steps are tried although they are refused: a forge may learn only a
moment later what was pushed to its remote, and one bad answer should not cost a question its
comment."""
TRY_FOR_S = 600.0
"""Seconds for which such a step is tried if it fails without a refusal, such as on a full disk."""


def is_given_up(session: IssueSession, plan: Plan, verb: StepVerb, error: SmError) -> bool:
    """Whether the session goes on without the step: it was refused, or tried for long.

    What the forge cannot take at the moment is tried further. But a person can be told and answer
    elsewhere, and does not wait for ever for a merge that others always overtake.
    """
    if verb not in ELSEWHERE or isinstance(error, MergeRefusedError):
        return verb in ELSEWHERE
    if isinstance(error, REFUSALS):
        return verb not in EARLY or measure_age(session, plan) > REFUSED_FOR_S
    passes = isinstance(error, TemporaryError) and not isinstance(error, OVERTAKEN)
    return (verb in TELLING or not passes) and not is_young(session, plan)


def is_young(session: IssueSession, plan: Plan) -> bool:
    """Whether its steps may still fail for a reason that passes."""
    return measure_age(session, plan) <= TRY_FOR_S


def measure_age(session: IssueSession, plan: Plan) -> float:
    """Return the plan's age in seconds, without the time before the end of a pause."""
    return time.time() - max(plan.created_at, pause.read_resumed_at(session.dir))


def find_earliest(session: IssueSession) -> float:
    """Return when the plan may be tried again (seconds since 1970), 0 for now.

    The forge may still be at work on the last try. Whatever calls for a pass meanwhile, such as the
    look at the forge after each write, must wait.
    """
    problem = read_problem(session.dir)
    not_before = problem.not_before if problem else 0.0
    return not_before if is_ahead(not_before, RETRY_S[1]) else 0.0


def note_obstacle(session: IssueSession, error: SmError) -> float:
    """Note what is in the way; return when to try again, in seconds since 1970.

    The pause grows with the time that it has been in the way.
    """
    if isinstance(error, NotNowError):
        problem = error.problem
    else:
        problem = SessionProblem(error.message, lasts=isinstance(error, REFUSALS))
    known, now = read_problem(session.dir), time.time()
    is_known = known is not None and structs.replace(known, not_before=0.0) == problem
    since = session.dir.problem.stat().st_mtime if is_known else now
    hooks_tell = session.profile.hooks and problem.refusal is Refusal.BUSY
    typing = isinstance(error, NotNowError) and not hooks_tell
    shortest, longest = TYPING_RETRY_S if typing else RETRY_S
    may_be_at_it = isinstance(error, UnknownOutcomeError)
    if may_be_at_it or isinstance(error, OVERTAKEN):
        shortest = UNKNOWN_S
    again_at = now + min(max((now - since) / 4, shortest), longest)
    if not is_known:
        session.project.record(events.Waiting(session=session.name, reason=error.message))
    if may_be_at_it or not is_known:
        problem = structs.replace(problem, not_before=again_at if may_be_at_it else 0.0)
        write_problem(session.dir, problem, since)
    return again_at
