"""The reaction matrix: which fact in which phase leads to which reaction. See `docs/PROTOCOL.md`.

Rows are tried from the top, so their order is a part of the protocol. First comes what a person or
the forge has settled, then a dead agent, then the agent's phase.
"""

from __future__ import annotations

from sm.adapters.forge.model import CheckState, Hold, PullState
from sm.base.phase import Phase
from sm.issues.rules.facts import LONG_PARK_S, REMINDERS, Facts, Life
from sm.issues.rules.rows import Row, Step, key_per_failure, key_per_question
from sm.sessions.failure import PATIENCE
from sm.sessions.hands import Deed
from sm.sessions.history import Count, Verb
from sm.sessions.signs import DIALOG_PATIENCE_S


def _is_long(f: Facts) -> bool:
    return f.failure is not None and f.failure.until > f.failure.since + LONG_PARK_S


def _ends(_: Facts) -> Deed:
    return Deed.END


def _judges(_: Facts) -> Deed:
    return Deed.JUDGE


def _restarts(f: Facts) -> Deed:
    """A dead agent is restarted; one that only gives no sign may be waiting for a person."""
    return Deed.RESTART if f.session is Life.GONE else Deed.JUDGE


def _gives_up(f: Facts) -> Deed:
    return Deed.END if f.session is Life.GONE else Deed.JUDGE


def _reminds(_: Facts) -> Deed:
    return Deed.REMIND


INJECT, NOTIFY, COMMENT = Verb.INJECT, Verb.NOTIFY, Verb.COMMENT

FINISH = (
    Step(Verb.KILL),
    Step(Verb.CLEAN_LABELS),
    Step(Verb.CLOSE_ISSUE),
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
    Step(COMMENT, "stopped"),
    Step(Verb.RELEASE_CLAIM),
    Step(Verb.FORGET),
)
CLOSE = (STOP[0], Step(Verb.CLOSE_PULL), *STOP[1:])
"""For an unwanted issue. A stopped issue keeps its pull request."""
LET_GO = (Step(Verb.RESTORE_BACKLOG), Step(Verb.RELEASE_CLAIM), Step(Verb.FORGET))
"""A blocked issue is not picked up until a person removes the label."""


def _fail(text: str) -> tuple[Step, ...]:
    return (Step(Verb.LABEL_BLOCKED), Step(COMMENT, text), Step(Verb.KILL), *LET_GO)


_SETTLED = (
    Row(
        "merged",
        "done",
        "merged on the forge",
        lambda f: f.phase is Phase.DONE and f.merged,
        FINISH,
        deed=_ends,
    ),
    Row(
        "merged-early",
        "any other",
        "merged on the forge, and the agent says no more",
        lambda f: f.phase is not Phase.DONE and f.merged and f.left_alone,
        FINISH,
        deed=_ends,
    ),
    Row(
        "issue-closed",
        "any",
        "a person closed the issue",
        lambda f: not f.issue_open and not f.merged,
        CLOSE,
        deed=_ends,
    ),
    Row(
        "pull-closed",
        "any",
        "a person closed the pull request unmerged",
        lambda f: f.pull is PullState.CLOSED,
        STOP,
        deed=_ends,
    ),
    Row(
        "blocked",
        "any",
        "a person set the blocked label",
        lambda f: f.blocked and not f.merged,
        STOP,
        deed=_ends,
    ),
)
"""A person or the forge has settled the issue."""

_ENDED = (
    Row(
        "failed",
        "failed",
        "entered",
        lambda f: f.phase is Phase.FAILED,
        _fail("failed"),
        deed=_ends,
    ),
    Row(
        "watched",
        "any",
        "idle or no sign of life, and a person is attached",
        lambda f: f.unwatched,
        (Step(NOTIFY, "watched"),),
        lambda f: f.silence,
        about=lambda f: f.silence,
        passing=True,
    ),
    Row(
        "idle-prompt",
        "(empty)",
        "idle marker on 3 polls running",
        lambda f: f.idle,
        (Step(Verb.KILL), *_fail("idle")),
        deed=_judges,
    ),
    Row(
        "recover",
        "any",
        "session gone or no sign of life; restarts left, pause over",
        lambda f: f.recoverable and f.now >= f.pause_until,
        (Step(Verb.KILL), Step(Verb.RECOVER, "recovery")),
        lambda f: str(f.history.recoveries_ever),
        deed=_restarts,
    ),
    Row(
        "recovery-pause",
        "any",
        "session gone or no sign of life; restarts left, pause not over",
        lambda f: f.recoverable,
        (),
    ),
    Row(
        "recovery-exhausted",
        "any",
        "session gone or no sign of life; no restart left",
        lambda f: f.crashed,
        _fail("crashed"),
        deed=_gives_up,
    ),
)
"""No agent is working: it gave up, never wrote a phase, or died."""

_ESCALATED = (
    Row(
        "reply",
        "any, escalated",
        "a trusted person answered",
        lambda f: bool(f.reply) and f.escalated and f.answerable,
        (Step(INJECT, "reply"),),
        lambda f: f.reply,
        counts=Count.RESET_ALL,
        about=key_per_question,
    ),
    Row(
        "trouble",
        "any",
        "an action of sm was refused for good",
        lambda f: bool(f.history.troubles) and not f.escalated,
        (Step(NOTIFY, "trouble"),),
        lambda f: f.history.troubles[-1],
    ),
    Row(
        "escalate",
        "escalate",
        "entered",
        lambda f: f.phase is Phase.ESCALATE and f.open,
        (Step(NOTIFY, "escalate"),),
    ),
    Row(
        "escalation-over",
        "any, escalated",
        "no answer for 24 h",
        lambda f: f.escalated and f.now >= f.asked_at + f.limits.escalation_timeout_s,
        _fail("unanswered"),
        deed=_judges,
    ),
    Row(
        "remind",
        "any, escalated",
        "every 6 h",
        lambda f: f.escalated and f.now >= f.remind_at,
        (Step(Verb.REMIND, "reminder"),),
        lambda f: f"{f.about}:{f.asked_at:.0f}:{f.reminders}",
        about=key_per_question,
        beside=True,
    ),
    Row(
        "remark",
        "any",
        "something to know of the session, which needs no answer",
        lambda f: bool(f.remark),
        (Step(COMMENT, "remark"),),
        lambda f: f.remark,
        beside=True,
    ),
)
"""A person was asked, or must be told."""

_DIALOG = Row(
    "dialog",
    "any",
    "a dialog is open in the agent's terminal for a minute",
    lambda f: f.dialog_at is not None and f.now >= f.dialog_at + DIALOG_PATIENCE_S,
    (Step(NOTIFY, "dialog"),),
    lambda f: f.matter,
    about=lambda f: f.matter,
    passing=True,
)
"""sm never answers it. It is over when a person has answered it in the terminal."""

_STOPPED = (
    _DIALOG,
    Row(
        "dialog-open",
        "any",
        "a dialog is open in the agent's terminal",
        lambda f: f.dialog_at is not None,
        (),
    ),
    Row(
        "turn-failed",
        "any",
        "the turn failed: no access, a refused request, or no success for hours",
        lambda f: (
            f.failure is not None and bool(f.matter) and f.matter not in f.history.escalations
        ),
        (Step(NOTIFY, "turn-failed"),),
        lambda f: f"{f.matter}:{f.failure.count // PATIENCE if f.failure else 0}",
        about=lambda f: f.matter,
        passing=True,
    ),
    Row(
        "park",
        "any",
        "the turn failed: usage limit or API trouble",
        lambda f: f.parked,
        (Step(Verb.PARK),),
        key_per_failure,
        passing=True,
    ),
    Row(
        "parked-long",
        "any",
        "parked for more than an hour",
        lambda f: f.parked and _is_long(f),
        (Step(COMMENT, "parked"),),
        lambda f: f"{f.failure.since:.3f}" if f.failure else "",
        passing=True,
    ),
    Row(
        "resume",
        "any",
        "the limit is over, the pause has passed",
        lambda f: f.resumable,
        (Step(INJECT, "resume"),),
        key_per_failure,
        counts=Count.RESUME,
        passing=True,
    ),
    Row("parked", "any", "not over yet, or a person has to see to it", lambda f: f.unreachable, ()),
)
"""The agent cannot go on. Messages to it wait."""

_SIGNALLED = (
    Row(
        "edited",
        "any",
        "a trusted person edited the issue",
        lambda f: bool(f.edit),
        (Step(INJECT, "edited"), Step(Verb.ADOPT_TEXT)),
        lambda f: f.edit,
        counts=Count.NEWS,
    ),
    Row(
        "review-edited",
        "any",
        "a trusted person edited a review that the agent was told of",
        lambda f: bool(f.review_edit),
        (Step(INJECT, "review-edited"), Step(Verb.ADOPT_REVIEW)),
        lambda f: f.review_edit,
        counts=Count.NEWS,
    ),
    Row(
        "pull-comment",
        "any",
        "a trusted person commented on the pull request",
        lambda f: bool(f.said) and f.pull is PullState.OPEN,
        (Step(INJECT, "pull-comment"),),
        lambda f: f.said,
        counts=Count.NEWS,
    ),
    Row(
        "phase-lost",
        "(missing)",
        "the phase file is gone",
        lambda f: f.phase_lost,
        (Step(Verb.CREATE_PHASE), Step(INJECT, "state-lost")),
        lambda f: f"{f.addressed_at:.0f}",
    ),
    Row(
        "unknown-sentinel",
        "unknown",
        "entered",
        lambda f: f.phase is Phase.UNKNOWN and f.open,
        (Step(INJECT, "unknown-sentinel"),),
    ),
    Row(
        "merge-held",
        "awaiting_review, done",
        "approved and green, and the forge holds it back for a while (30 min, in a queue 3 h)",
        lambda f: f.merge_held and f.now >= f.merge_held_until,
        (Step(NOTIFY, "merge-held"),),
    ),
    Row(
        "merge-queued",
        "awaiting_review, done",
        "in the merge queue of the forge",
        lambda f: f.merge_held and f.queued,
        (),
    ),
    Row(
        "not-merged",
        "done",
        "not merged",
        lambda f: f.phase is Phase.DONE and f.open,
        (Step(INJECT, "not-merged"),),
    ),
    Row(
        "nothing-pushed",
        "awaiting_ci, awaiting_review",
        "the branch on the remote lacks the work",
        lambda f: f.awaits and (f.unpushed or not f.pushed),
        (Step(INJECT, "nothing-pushed"),),
    ),
    Row(
        "open-pull",
        "awaiting_ci, awaiting_review",
        "branch pushed, no pull request yet",
        lambda f: f.awaits and f.pull is None,
        (Step(Verb.OPEN_PULL),),
    ),
)
"""What does not depend on CI and reviewers: a changed task, then phases with such an answer."""

_CI = (
    Row(
        "ci-passed",
        "awaiting_ci",
        "CI success",
        lambda f: f.awaits_ci and f.check is CheckState.SUCCESS,
        (Step(Verb.WRITE_CI_RESULT), Step(INJECT, "ci-passed")),
        counts=Count.RESET_FIXES,
    ),
    Row(
        "ci-none",
        "awaiting_ci",
        "no CI configured",
        lambda f: f.awaits_ci and f.pull is not None and f.check is CheckState.NONE,
        (Step(Verb.WRITE_CI_RESULT), Step(INJECT, "ci-none")),
    ),
    Row(
        "ci-failed",
        "awaiting_ci",
        "CI failure",
        lambda f: f.awaits_ci and f.red and f.fixable,
        (Step(Verb.WRITE_CI_RESULT), Step(INJECT, "ci-failed")),
        counts=Count.FIX,
    ),
    Row(
        "ci-exhausted",
        "awaiting_ci, awaiting_review",
        "CI failure, attempts exhausted (3)",
        lambda f: f.awaits and f.red and not f.fixable,
        (Step(Verb.WRITE_CI_RESULT), Step(NOTIFY, "ci-exhausted")),
    ),
    Row(
        "review-changes",
        "any",
        "REQUEST_CHANGES",
        lambda f: f.changes_requested and f.history.rounds < f.limits.max_rounds,
        (Step(INJECT, "review-changes"),),
        lambda f: f.review_id,
        counts=Count.ROUND,
    ),
    Row(
        "review-exhausted",
        "any",
        "REQUEST_CHANGES, rounds exhausted (5)",
        lambda f: (
            f.changes_requested
            and f.history.rounds >= f.limits.max_rounds
            # Remarks of the last round do not count against the agent's answer to them.
            and not f.history.has(f"review-changes:{f.review_id}")
        ),
        (Step(NOTIFY, "review-exhausted"),),
        lambda f: f.review_id,
    ),
    Row(
        "ci-rerun",
        "awaiting_ci, awaiting_review",
        "CI itself failed elsewhere; once for each commit",
        lambda f: bool(f.outage) and f.limits.repeats_ci,
        (Step(Verb.RERUN_CI),),
        lambda f: f.head,
    ),
    Row(
        "ci-rerunning",
        "awaiting_ci, awaiting_review",
        "it was run again, and has no result yet",
        lambda f: f.now < f.rerun_until,
        (),
    ),
    Row(
        "ci-broken",
        "awaiting_ci, awaiting_review",
        "CI itself failed, also when it was run once more",
        lambda f: bool(f.outage),
        (Step(NOTIFY, "ci-broken"),),
        lambda f: f.outage,
        about=lambda f: f.outage,
    ),
    Row(
        "ci-timeout",
        "awaiting_ci",
        "CI timeout (30 min)",
        lambda f: (
            f.awaits_ci and f.now >= f.ci_due_at and not f.red and not (f.outage and f.escalated)
        ),
        (Step(INJECT, "ci-timeout"), Step(NOTIFY, "ci-timeout")),
        provisional=True,
    ),
    Row("ci-pending", "awaiting_ci", "CI pending", lambda f: f.awaits_ci, ()),
)

_REVIEW = (
    Row(
        "conflict",
        "awaiting_review",
        "base has conflicts",
        lambda f: f.awaits_review and f.conflicts,
        (Step(INJECT, "conflict"),),
    ),
    Row(
        "review-red",
        "awaiting_review",
        "CI failure at the head under review",
        lambda f: f.awaits_review and f.red and f.fixable,
        (Step(Verb.WRITE_CI_RESULT), Step(INJECT, "ci-failed")),
        counts=Count.FIX,
    ),
    Row(
        "behind",
        "awaiting_review",
        "APPROVE and green, and the forge wants the base's last commit in it",
        lambda f: f.awaits_review and f.to_merge and f.hold is Hold.BEHIND,
        (Step(INJECT, "behind"),),
    ),
    Row(
        "queue-dropped",
        "awaiting_review",
        "removed from the merge queue, unmerged",
        lambda f: f.awaits_review and 0 < f.dropped_at <= f.now,
        (Step(INJECT, "queue-dropped"),),
    ),
    Row(
        "approved",
        "awaiting_review",
        "APPROVE and green, the agent merges",
        lambda f: (
            f.awaits_review and f.to_merge and f.hold is Hold.NONE and not f.limits.merge_by_sm
        ),
        (Step(INJECT, "approved"),),
    ),
    Row(
        "approved-merge",
        "awaiting_review",
        "APPROVE and green, sm merges",
        lambda f: f.awaits_review and f.to_merge and f.hold is Hold.NONE and f.limits.merge_by_sm,
        (Step(Verb.MERGE),),
        lambda f: f"{f.write}:{f.head}",
    ),
    Row(
        "ci-late",
        "awaiting_review",
        "CI timeout (30 min) at the head under review",
        lambda f: f.awaits_review and f.check is CheckState.PENDING and f.now >= f.ci_due_at,
        (Step(NOTIFY, "ci-late"),),
        lambda f: f"{f.write}:{f.head}",
    ),
    Row(
        "review-timeout",
        "awaiting_review",
        "timeout (3 h)",
        lambda f: (
            f.awaits_review and not f.merge_held and f.waited_s() >= f.limits.review_timeout_s
        ),
        (Step(INJECT, "review-timeout"), Step(NOTIFY, "review-timeout")),
        provisional=True,
    ),
    Row(
        "review-pending",
        "awaiting_review",
        "no verdict yet, or CI pending",
        lambda f: f.awaits_review,
        (),
    ),
    Row(
        "merge-reminder",
        "awaiting_review, answered",
        "approved and green, head unchanged, not merged for a while",
        lambda f: f.unmerged_after("approved"),
        (Step(INJECT, "merge-reminder"),),
        deed=_reminds,
    ),
    Row(
        "merge-stuck",
        "awaiting_review, answered",
        "reminded, and still not merged",
        lambda f: f.unmerged_after("merge-reminder") and not f.escalated,
        (Step(NOTIFY, "merge-stuck"),),
    ),
)

_SILENT = (
    Row(
        "question",
        "(empty), answered",
        "turn ended in a question to a person, a minute ago",
        lambda f: f.asks and f.now >= f.ended_at + DIALOG_PATIENCE_S,
        (Step(NOTIFY, "question"),),
        lambda f: f.matter,
        about=lambda f: f.matter,
        passing=True,
    ),
    Row(
        "protocol-reminder",
        "(empty), answered",
        "turn ended, no background task, no new phase; twice at most",
        lambda f: f.fell_silent and f.history.reminders < REMINDERS,
        (Step(INJECT, "protocol-reminder"),),
        lambda f: f"{f.signs.ended_at:.3f}" if f.signs and f.signs.ended_at else "",
        counts=Count.REMINDER,
        passing=True,
        deed=_reminds,
    ),
)
"""It is the agent's turn, and it does nothing."""

ROWS = (*_SETTLED, *_ENDED, *_ESCALATED, *_STOPPED, *_SIGNALLED, *_CI, *_REVIEW, *_SILENT)
"""The matrix, in the order of the tries."""


OVERTAKING = (*_SETTLED, *_ENDED)
"""Rows that make a message pointless which is not typed yet, and a merge that is tried again."""

INTERRUPTING = (_DIALOG,)
"""Rows that cannot wait until a message is typed. The message is then decided anew."""

BY_NAME = {row.name: row for row in ROWS}
