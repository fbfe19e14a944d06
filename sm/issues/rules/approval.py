"""Rows of the reaction matrix for CI and reviewers, from the pushed branch to the merge. Pure."""

from __future__ import annotations

from sm.adapters.forge.model import CheckState, Hold
from sm.base.phase import Phase
from sm.issues.rules.endings import ANY
from sm.issues.rules.rows import AnswerStage, PhaseCondition, Row, Step
from sm.sessions.history import Count, StepVerb
from sm.sessions.presence_rule import Disturbance

INJECT, NOTIFY = StepVerb.INJECT, StepVerb.NOTIFY

CI = PhaseCondition(frozenset({Phase.AWAITING_CI}), AnswerStage.OPEN)
REVIEW = PhaseCondition(frozenset({Phase.AWAITING_REVIEW}), AnswerStage.OPEN)
EITHER = PhaseCondition(CI.phases | REVIEW.phases, AnswerStage.OPEN)
MERGING = PhaseCondition(REVIEW.phases, AnswerStage.ANSWERED)
QUEUEING = PhaseCondition(frozenset({Phase.AWAITING_REVIEW, Phase.DONE}), AnswerStage.OPEN)

CI_ROWS = (
    Row(
        "ci-passed",
        CI,
        "CI success",
        (Step(StepVerb.WRITE_CI_RESULT), Step(INJECT, "ci-passed")),
        lambda f: f.check is CheckState.SUCCESS,
        counts=Count.RESET_FIXES,
    ),
    Row(
        "ci-none",
        CI,
        "no CI configured",
        (Step(StepVerb.WRITE_CI_RESULT), Step(INJECT, "ci-none")),
        lambda f: f.pull is not None and f.check is CheckState.NONE,
    ),
    Row(
        "ci-failed",
        CI,
        "CI failure",
        (Step(StepVerb.WRITE_CI_RESULT), Step(INJECT, "ci-failed")),
        lambda f: f.red and f.fixable,
        counts=Count.FIX,
    ),
    Row(
        "ci-exhausted",
        EITHER,
        "CI failure, no attempt left",
        (Step(StepVerb.WRITE_CI_RESULT), Step(NOTIFY, "ci-exhausted")),
        lambda f: f.red and not f.fixable,
        limit="attempts: {max_fixes}",
    ),
    Row(
        "review-changes",
        ANY,
        "REQUEST_CHANGES",
        (Step(INJECT, "review-changes"),),
        lambda f: f.changes_requested and f.history.rounds < f.policy.max_rounds,
        lambda f: f.review_id,
        counts=Count.ROUND,
    ),
    Row(
        "review-exhausted",
        ANY,
        "REQUEST_CHANGES, no round left",
        (Step(NOTIFY, "review-exhausted"),),
        lambda f: (
            f.changes_requested
            and f.history.rounds >= f.policy.max_rounds
            # Remarks of the last round do not count against the agent's answer to them.
            and not f.history.has(f"review-changes:{f.review_id}")
        ),
        lambda f: f.review_id,
        limit="rounds: {max_rounds}",
    ),
    Row(
        "ci-rerun",
        EITHER,
        "CI itself failed elsewhere; once for each commit",
        (Step(StepVerb.RERUN_CI),),
        lambda f: bool(f.outage) and f.policy.repeats_ci,
        lambda f: f.head,
    ),
    Row(
        "ci-rerunning",
        EITHER,
        "it was run again, and has no result yet",
        (),
        lambda f: f.now < f.rerun_until,
    ),
    Row(
        "ci-broken",
        EITHER,
        "CI itself failed, also when it was run once more",
        (Step(NOTIFY, "ci-broken"),),
        lambda f: bool(f.outage),
        lambda f: f.outage,
        about=lambda f: f.outage,
    ),
    Row(
        "ci-unapproved",
        EITHER,
        "CI begins once a person has approved it where it runs; once for each commit",
        (Step(StepVerb.TELL, "ci-unapproved"),),
        lambda f: f.ci_unapproved,
        lambda f: f.head,
        passing=True,
        beside=True,
    ),
    Row(
        "ci-timeout",
        CI,
        "CI timeout",
        (Step(INJECT, "ci-timeout"), Step(NOTIFY, "ci-timeout")),
        lambda f: f.now >= f.ci_due_at and not f.red and not (f.outage and f.escalated),
        limit="{ci_timeout_s}",
        provisional=True,
    ),
    Row("ci-pending", CI, "CI pending", ()),
)
"""Rows for an agent that waits for CI, and for failures of CI elsewhere."""

REVIEW_ROWS = (
    Row(
        "conflict",
        REVIEW,
        "base has conflicts",
        (Step(INJECT, "conflict"),),
        lambda f: f.conflicts,
    ),
    Row(
        "review-red",
        REVIEW,
        "CI failure at the head under review",
        (Step(StepVerb.WRITE_CI_RESULT), Step(INJECT, "ci-failed")),
        lambda f: f.red and f.fixable,
        counts=Count.FIX,
    ),
    Row(
        "behind",
        REVIEW,
        "APPROVE and green, and the forge wants the base's last commit in it",
        (Step(INJECT, "behind"),),
        lambda f: f.to_merge and f.hold is Hold.BEHIND,
    ),
    Row(
        "queue-dropped",
        REVIEW,
        "removed from the merge queue, unmerged",
        (Step(INJECT, "queue-dropped"),),
        lambda f: 0 < f.dropped_at <= f.now,
    ),
    Row(
        "approved",
        REVIEW,
        "APPROVE and green, the agent merges",
        (Step(INJECT, "approved"),),
        lambda f: f.to_merge and f.hold is Hold.NONE and not f.policy.merge_by_sm,
    ),
    Row(
        "approved-merge",
        REVIEW,
        "APPROVE and green, sm merges",
        (Step(StepVerb.MERGE),),
        lambda f: f.to_merge and f.hold is Hold.NONE and f.policy.merge_by_sm,
        lambda f: f"{f.write}:{f.head}",
    ),
    Row(
        "review-waits",
        REVIEW,
        "open and green, and it is a reviewer's turn, also again; once for each commit",
        (Step(StepVerb.TELL, "review-waits"),),
        lambda f: f.review_waits,
        lambda f: f.head,
        passing=True,
        beside=True,
    ),
    Row(
        "ci-late",
        REVIEW,
        "CI timeout at the head under review",
        (Step(NOTIFY, "ci-late"),),
        lambda f: f.check is CheckState.PENDING and f.now >= f.ci_due_at,
        lambda f: f"{f.write}:{f.head}",
        limit="{ci_timeout_s}",
    ),
    Row(
        "review-timeout",
        REVIEW,
        "timeout",
        (Step(INJECT, "review-timeout"), Step(NOTIFY, "review-timeout")),
        lambda f: not f.merge_held and f.now >= f.review_due_at,
        limit="{review_timeout_s}",
        provisional=True,
    ),
    Row("review-pending", REVIEW, "no verdict yet, or CI pending", ()),
    Row(
        "merge-reminder",
        MERGING,
        "approved and green, head unchanged, not merged for a while",
        (Step(INJECT, "merge-reminder"),),
        lambda f: f.unmerged_after("approved"),
        limit="{merge_remind_s}",
        deed=Disturbance.REMIND,
    ),
    Row(
        "merge-stuck",
        MERGING,
        "reminded, and still not merged",
        (Step(NOTIFY, "merge-stuck"),),
        lambda f: f.unmerged_after("merge-reminder") and not f.escalated,
        limit="{merge_remind_s}",
    ),
)
"""Rows for an agent that waits for a reviewer, then for the merge."""
