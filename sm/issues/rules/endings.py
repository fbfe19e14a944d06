"""First rows of the reaction matrix: the session ends, or its agent is started again. Pure."""

from __future__ import annotations

from sm.adapters.forge.model import PullState
from sm.base.phase import Phase
from sm.issues.rules.rows import PHASES, Row, Said, Step
from sm.sessions.history import Verb
from sm.sessions.presence_rule import Deed

SETTLE = (Step(Verb.CLEAN_LABELS), Step(Verb.CLOSE_ISSUE))
"""Steps that show a merge on the forge, whoever is still at the agent's terminal."""
FINISH = (
    Step(Verb.KILL),
    Step(Verb.REMOVE_WORKTREE),
    Step(Verb.DELETE_BRANCH),
    Step(Verb.RELEASE_CLAIM),
    Step(Verb.FORGET),
)
STOP = (
    Step(Verb.KILL),
    Step(Verb.CLEAN_LABELS),
    Step(Verb.REMOVE_WORKTREE),
    Step(Verb.DELETE_EMPTY_BRANCH),
    Step(Verb.COMMENT, "stopped"),
    Step(Verb.RELEASE_CLAIM),
    Step(Verb.FORGET),
)
CLOSE = (STOP[0], Step(Verb.CLOSE_PULL), *STOP[1:])
"""Steps for an unwanted issue. A stopped issue keeps its pull request."""
LET_GO = (Step(Verb.RESTORE_BACKLOG), Step(Verb.RELEASE_CLAIM), Step(Verb.FORGET))
"""Steps for a blocked issue: it is not picked up until a person removes the label."""


def fail_with(text: str) -> tuple[Step, ...]:
    """Return the steps that give an issue up, with a comment that says why."""
    return (Step(Verb.LABEL_BLOCKED), Step(Verb.COMMENT, text), Step(Verb.KILL), *LET_GO)


ANY, EMPTY = Said(), Said(frozenset({Phase.NONE}))
DONE = frozenset({Phase.DONE})

YIELD = (Step(Verb.KILL), Step(Verb.KEEP_WORK), Step(Verb.FORGET))
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
        Said(DONE),
        "merged on the forge",
        FINISH,
        lambda f: f.merged,
        deed=Deed.END,
    ),
    Row(
        "merged-early",
        Said(PHASES - DONE),
        "merged on the forge, and the agent says no more",
        FINISH,
        lambda f: f.merged and f.left_alone,
        deed=Deed.END,
    ),
    Row(
        "issue-closed",
        ANY,
        "a person closed the issue",
        CLOSE,
        lambda f: not f.issue_open and not f.merged,
        deed=Deed.END,
    ),
    Row(
        "pull-closed",
        ANY,
        "a person closed the pull request unmerged",
        STOP,
        lambda f: f.pull is PullState.CLOSED,
        deed=Deed.END,
    ),
    Row(
        "given-back",
        ANY,
        "a person ended all sessions",
        (Step(Verb.KILL), *LET_GO),
        lambda f: f.given_back and not f.merged,
        deed=Deed.END,
    ),
    Row(
        "blocked",
        ANY,
        "a person set the blocked label",
        STOP,
        lambda f: f.blocked and not f.merged,
        deed=Deed.END,
    ),
)
"""Rows for an issue that a person or the forge has settled."""

ENDED = (
    Row(
        "failed",
        Said(frozenset({Phase.FAILED})),
        "entered",
        fail_with("failed"),
        deed=Deed.END,
    ),
    Row(
        "watched",
        ANY,
        "idle or no sign of life, and a person is attached",
        (Step(Verb.NOTIFY, "watched"),),
        lambda f: f.unwatched,
        lambda f: f.silence,
        about=lambda f: f.silence,
        passing=True,
    ),
    Row(
        "idle-prompt",
        EMPTY,
        "idle marker on 3 polls running",
        (Step(Verb.KILL), *fail_with("idle")),
        lambda f: f.idle,
        deed=Deed.JUDGE,
    ),
    Row(
        "recover",
        ANY,
        "session gone or no sign of life; restarts left, pause over",
        (Step(Verb.KILL), Step(Verb.RECOVER, "recovery")),
        lambda f: f.recoverable and f.now >= f.pause_until,
        lambda f: str(f.history.recoveries_ever),
        # An agent that only gives no sign may be waiting for a person.
        deed=Deed.JUDGE,
        to_gone=Deed.RESTART,
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
        deed=Deed.JUDGE,
        to_gone=Deed.END,
    ),
)
"""Rows for a session without a working agent: it gave up, never wrote a phase, or died."""
