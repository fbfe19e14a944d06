"""First rows of the reaction matrix: the session ends, or its agent is started again. Pure."""

from __future__ import annotations

from sm.adapters.forge.model import PullState
from sm.base.phase import Phase
from sm.issues.rules.rows import PHASES, PhaseCondition, Row, Step
from sm.sessions.history import StepVerb
from sm.sessions.presence_rule import Disturbance

SETTLE = (Step(StepVerb.CLEAN_LABELS), Step(StepVerb.CLOSE_ISSUE))
"""Steps that show a merge on the forge, whoever is still at the agent's terminal."""
FINISH = (
    Step(StepVerb.KILL),
    Step(StepVerb.REMOVE_WORKTREE),
    Step(StepVerb.DELETE_BRANCH),
    Step(StepVerb.RELEASE_CLAIM),
    Step(StepVerb.FORGET),
)
STOP = (
    Step(StepVerb.KILL),
    Step(StepVerb.CLEAN_LABELS),
    Step(StepVerb.REMOVE_WORKTREE),
    Step(StepVerb.DELETE_EMPTY_BRANCH),
    Step(StepVerb.COMMENT, "stopped"),
    Step(StepVerb.RELEASE_CLAIM),
    Step(StepVerb.FORGET),
)
CLOSE = (STOP[0], Step(StepVerb.CLOSE_PULL), *STOP[1:])
"""Steps for an unwanted issue. A stopped issue keeps its pull request."""
LET_GO = (Step(StepVerb.RESTORE_BACKLOG), Step(StepVerb.RELEASE_CLAIM), Step(StepVerb.FORGET))
"""Steps for a blocked issue: it is not picked up until a person removes the label."""


def fail_with(text: str) -> tuple[Step, ...]:
    """Return the steps that give an issue up, with a comment that says why."""
    return (
        Step(StepVerb.LABEL_BLOCKED),
        Step(StepVerb.COMMENT, text),
        Step(StepVerb.KILL),
        *LET_GO,
    )


ANY, EMPTY = PhaseCondition(), PhaseCondition(frozenset({Phase.NONE}))
DONE = frozenset({Phase.DONE})

YIELD = (Step(StepVerb.KILL), Step(StepVerb.KEEP_WORK), Step(StepVerb.FORGET))
"""Steps for a session whose issue others have: it waits for nobody, and tells nobody."""

SETTLED = (
    Row(
        "overtaken",
        ANY,
        "another attempt has the issue",
        YIELD,
        lambda f: f.overtaken,
    ),
    Row(
        "merge-seen",
        ANY,
        "merged on the forge; once, at whatever its agent is",
        SETTLE,
        lambda f: f.merged,
        lambda f: f.head,
    ),
    Row(
        "merged",
        PhaseCondition(DONE),
        "merged on the forge",
        FINISH,
        lambda f: f.merged,
        deed=Disturbance.END,
    ),
    Row(
        "merged-early",
        PhaseCondition(PHASES - DONE),
        "merged on the forge, and the agent says no more",
        FINISH,
        lambda f: f.merged and f.left_alone,
        deed=Disturbance.END,
    ),
    Row(
        "issue-closed",
        ANY,
        "a person closed the issue",
        CLOSE,
        lambda f: not f.issue_open and not f.merged,
        deed=Disturbance.END,
    ),
    Row(
        "pull-closed",
        ANY,
        "a person closed the pull request unmerged",
        STOP,
        lambda f: f.pull is PullState.CLOSED,
        deed=Disturbance.END,
    ),
    Row(
        "given-back",
        ANY,
        "a person ended all sessions",
        (Step(StepVerb.KILL), *LET_GO),
        lambda f: f.given_back and not f.merged,
        deed=Disturbance.END,
    ),
    Row(
        "blocked",
        ANY,
        "a person set the blocked label",
        STOP,
        lambda f: f.blocked and not f.merged,
        deed=Disturbance.END,
    ),
)
"""Rows for an issue that a person or the forge has settled."""

ENDED = (
    Row(
        "failed",
        PhaseCondition(frozenset({Phase.FAILED})),
        "entered",
        fail_with("failed"),
        deed=Disturbance.END,
    ),
    Row(
        "watched",
        ANY,
        "idle or no sign of life, and a person is attached",
        (Step(StepVerb.NOTIFY, "watched"),),
        lambda f: f.unwatched,
        lambda f: f.silence,
        about=lambda f: f.silence,
        passing=True,
    ),
    Row(
        "idle-prompt",
        EMPTY,
        "idle marker on 3 polls running",
        (Step(StepVerb.KILL), *fail_with("idle")),
        lambda f: f.idle,
        deed=Disturbance.JUDGE,
    ),
    Row(
        "recover",
        ANY,
        "session gone or no sign of life; restarts left, pause over",
        (Step(StepVerb.KILL), Step(StepVerb.RECOVER, "recovery")),
        lambda f: f.recoverable and f.now >= f.pause_until,
        lambda f: str(f.history.recoveries_ever),
        # An agent that only gives no sign may be waiting for a person.
        deed=Disturbance.JUDGE,
        to_gone=Disturbance.RESTART,
    ),
    Row(
        "recovery-pause",
        ANY,
        "session gone or no sign of life; restarts left, pause not over",
        (),
        lambda f: f.recoverable,
    ),
    Row(
        "recovery-exhausted",
        ANY,
        "session gone or no sign of life; no restart left",
        fail_with("crashed"),
        lambda f: f.crashed,
        limit="restarts: {max_recoveries}",
        deed=Disturbance.JUDGE,
        to_gone=Disturbance.END,
    ),
)
"""Rows for a session without a working agent: it gave up, never wrote a phase, or died."""
