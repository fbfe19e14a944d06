"""Reaction matrix: which fact in which phase leads to which reaction. See `docs/PROTOCOL.md`.

Rows are tried from the top, so their order is a part of the protocol. First comes what a person or
the forge has settled, then a dead agent (`endings`), then limits (`spending`), then the agent's
phase; the rows for CI and reviewers are in `approval`.
"""

from __future__ import annotations

from sm.adapters.forge.model import PullState
from sm.base.phase import Phase
from sm.issues.rules.approval import CI_ROWS, EITHER, QUEUEING, REVIEW_ROWS
from sm.issues.rules.endings import ANY, DONE, EMPTY, ENDED, SETTLED, fail_with
from sm.issues.rules.facts import CONTEXT_REFUSED, ONCE, REMINDERS
from sm.issues.rules.rows import (
    AnswerStage,
    PhaseCondition,
    Row,
    Step,
    key_per_failure,
    key_per_offer,
    key_per_question,
)
from sm.issues.rules.spending import AFTER_LIMIT, AT_LIMIT, NEAR_LIMIT
from sm.sessions.failure import LONG_PARK_S, PATIENCE
from sm.sessions.history import Count, StepVerb
from sm.sessions.presence_rule import Disturbance

INJECT, NOTIFY, COMMENT = StepVerb.INJECT, StepVerb.NOTIFY, StepVerb.COMMENT

ESCALATED = PhaseCondition(stage=AnswerStage.ESCALATED)
ITS_TURN = PhaseCondition(stage=AnswerStage.ANSWERED)

_ASKS = (
    Row(
        "first-escalate",
        PhaseCondition(frozenset({Phase.ESCALATE}), AnswerStage.OPEN),
        "entered, and a session is to be asked before people",
        (Step(StepVerb.CONSULT, "first"),),
        lambda f: f.first_there and not f.escalated,
        limit="people after {first_for_s}",
    ),
    Row(
        "escalate",
        PhaseCondition(frozenset({Phase.ESCALATE}), AnswerStage.OPEN),
        "entered, and no session is asked first",
        (Step(NOTIFY, "escalate"),),
        lambda f: not f.asks_first,
    ),
)
"""Rows for an agent that asks a person."""

_ESCALATED = (
    Row(
        "reply",
        ESCALATED,
        "a trusted person answered, or the session that was asked first",
        (Step(INJECT, "reply"),),
        lambda f: bool(f.reply) and f.answerable and not f.brake,
        lambda f: f.reply,
        counts=Count.RESET_ALL,
        about=key_per_question,
    ),
    Row(
        "trouble",
        ANY,
        "an action of sm was refused for good",
        (Step(NOTIFY, "trouble"),),
        lambda f: bool(f.history.troubles) and (not f.escalated or f.asks_first),
        lambda f: f.history.troubles[-1],
    ),
    *_ASKS,
    Row(
        "escalation-over",
        ESCALATED,
        "no answer in time",
        fail_with("unanswered"),
        lambda f: f.now >= f.answer_due_at,
        limit="{escalation_timeout_s}",
        deed=Disturbance.JUDGE,
    ),
    Row(
        "remind",
        ESCALATED,
        "no answer since the last reminder",
        (Step(StepVerb.REMIND, "reminder"),),
        lambda f: f.now >= f.remind_at,
        lambda f: f"{f.about}:{f.asked_at:.0f}:{f.reminders}",
        limit="every {remind_s}",
        about=key_per_question,
        beside=True,
    ),
    Row(
        "remark",
        ANY,
        "something to know of the session, which needs no answer",
        (Step(COMMENT, "remark"),),
        lambda f: bool(f.remark),
        lambda f: f.remark,
        beside=True,
    ),
)
"""Rows for a person who was asked, or must be told."""

_DIALOG = Row(
    "dialog",
    ANY,
    "a dialog is open in the agent's terminal for 5 s (a minute, if a person is there)",
    (Step(NOTIFY, "dialog"),),
    lambda f: f.dialog_at is not None and f.now >= f.dialog_due_at,
    lambda f: f.matter,
    about=lambda f: f.matter,
    passing=True,
    in_sight=True,
)
"""Row for a dialog: sm never answers one. It is over when a person has answered in the terminal."""

_STOPPED = (
    _DIALOG,
    Row(
        "dialog-open",
        ANY,
        "a dialog is open in the agent's terminal",
        (),
        lambda f: f.dialog_at is not None,
    ),
    Row(
        CONTEXT_REFUSED,
        ANY,
        "the API refuses the conversation a second time; once",
        (
            Step(COMMENT, CONTEXT_REFUSED),
            Step(StepVerb.KILL),
            Step(StepVerb.RECOVER, CONTEXT_REFUSED),
        ),
        lambda f: f.gives_up,
        lambda f: ONCE,
        deed=Disturbance.JUDGE,
    ),
    Row(
        "turn-failed",
        ANY,
        "the turn failed, for no fault of its account: no access, a refused request, tries in vain",
        (Step(NOTIFY, "turn-failed"),),
        lambda f: (
            f.failure is not None and bool(f.matter) and f.matter not in f.history.escalations
        ),
        lambda f: f"{f.matter}:{f.failure.count // PATIENCE if f.failure else 0}",
        about=lambda f: f.matter,
        passing=True,
    ),
    Row(
        "login-again",
        ANY,
        "the turn failed again without access, while others of its account work or its login on "
        "disk has changed; once, with its conversation, and no restart is counted",
        (Step(StepVerb.KILL), Step(StepVerb.RECOVER, "recovery")),
        lambda f: f.has_stale_login,
        key_per_failure,
        counts=Count.NO_ATTEMPT,
        deed=Disturbance.RESTART,
    ),
    Row(
        "park",
        ANY,
        "the turn failed: usage limit, API trouble, or a fault of its account",
        (Step(StepVerb.PARK),),
        lambda f: f.parked and f.failure is not None,
        key_per_failure,
        passing=True,
    ),
    Row(
        "parked-long",
        ANY,
        "parked for more than an hour, and its account is not known",
        (Step(COMMENT, "parked"),),
        lambda f: (
            f.failure is not None
            and f.account is None
            and f.parked
            and f.failure.until > f.failure.since + LONG_PARK_S
        ),
        lambda f: f"{f.failure.since:.3f}" if f.failure else "",
        passing=True,
    ),
    Row(
        "resume",
        ITS_TURN,
        "the limit is over, the pause has passed, or it is its turn to go on",
        (Step(INJECT, "resume"),),
        lambda f: f.resumable,
        key_per_failure,
        counts=Count.RESUME,
        passing=True,
    ),
    Row("parked", ANY, "not over yet, or a person has to see to it", (), lambda f: f.unreachable),
)
"""Rows for an agent that cannot go on. Messages to it wait."""

_SIGNALLED = (
    Row(
        "edited",
        ANY,
        "a trusted person edited the issue",
        (Step(INJECT, "edited"), Step(StepVerb.ADOPT_TEXT)),
        lambda f: bool(f.edit),
        lambda f: f.edit,
        counts=Count.NEWS,
    ),
    Row(
        "review-edited",
        ANY,
        "a trusted person edited a review that the agent was told of",
        (Step(INJECT, "review-edited"), Step(StepVerb.ADOPT_REVIEW)),
        lambda f: bool(f.review_edit),
        lambda f: f.review_edit,
        counts=Count.NEWS,
    ),
    Row(
        "pull-comment",
        ANY,
        "a trusted person commented on the pull request",
        (Step(INJECT, "pull-comment"),),
        lambda f: bool(f.said) and f.pull is PullState.OPEN,
        lambda f: f.said,
        counts=Count.NEWS,
    ),
    Row(
        "phase-lost",
        EMPTY,
        "the phase file is gone",
        (Step(StepVerb.CREATE_PHASE), Step(INJECT, "state-lost")),
        lambda f: f.phase_lost,
        lambda f: f"{f.addressed_at:.0f}",
    ),
    Row(
        "unknown-sentinel",
        PhaseCondition(frozenset({Phase.UNKNOWN}), AnswerStage.OPEN),
        "entered",
        (Step(INJECT, "unknown-sentinel"),),
        passing=True,
    ),
    Row(
        "merge-held",
        QUEUEING,
        "approved and green, and the forge holds it back for a while",
        (Step(NOTIFY, "merge-held"),),
        lambda f: f.merge_held and f.now >= f.merge_held_until,
        limit="{merge_remind_s}, in a queue {review_timeout_s}",
    ),
    Row(
        "merge-queued",
        QUEUEING,
        "in the merge queue of the forge",
        (),
        lambda f: f.merge_held and f.queued,
    ),
    Row(
        "not-merged",
        PhaseCondition(DONE, AnswerStage.OPEN),
        "not merged",
        (Step(INJECT, "not-merged"),),
        passing=True,
    ),
    Row(
        "outrun",
        EITHER,
        "the branch on the remote has commits that the worktree of a later attempt lacks",
        (Step(INJECT, "outrun"),),
        lambda f: f.outrun,
        passing=True,
    ),
    Row(
        "nothing-pushed",
        EITHER,
        "the branch on the remote lacks the work",
        (Step(INJECT, "nothing-pushed"),),
        lambda f: f.unpushed or not f.pushed,
        passing=True,
    ),
    Row(
        "open-pull",
        EITHER,
        "branch pushed, no pull request yet, or it is gone",
        (Step(StepVerb.OPEN_PULL),),
        lambda f: f.pull is None,
        key_per_offer,
    ),
)
"""Rows that depend on neither CI nor reviewers: a changed task, then phases with such an answer."""

_SILENT = (
    Row(
        "first-question",
        ITS_TURN,
        "the same as below, and a session is to be asked before people",
        (Step(StepVerb.CONSULT, "first"),),
        lambda f: f.asks and f.now >= f.question_due_at and f.first_there and not f.escalated,
        lambda f: f.matter,
        limit="people after {first_for_s}",
        about=lambda f: f.matter,
        passing=True,
    ),
    Row(
        "question",
        ITS_TURN,
        "turn ended in a question to a person, a minute ago, and no session is asked first",
        (Step(NOTIFY, "question"),),
        lambda f: f.asks and f.now >= f.question_due_at and not f.asks_first,
        lambda f: f.matter,
        about=lambda f: f.matter,
        passing=True,
    ),
    Row(
        "protocol-reminder",
        ITS_TURN,
        "turn ended, no background task, no new phase; twice at most",
        (Step(INJECT, "protocol-reminder"),),
        lambda f: f.fell_silent and f.history.reminders < REMINDERS,
        lambda f: f"{f.ended_at:.3f}" if f.fell_silent else "",
        counts=Count.REMINDER,
        passing=True,
        deed=Disturbance.REMIND,
    ),
    Row(
        "silent",
        ITS_TURN,
        "turn ended without a phase after each reminder, and the agent has written one before",
        (Step(StepVerb.TELL, "silent"),),
        lambda f: f.unheeded and f.phase is not Phase.NONE,
        lambda f: f"{f.ended_at:.3f}",
        passing=True,
        beside=True,
    ),
)
"""Rows for an agent that does nothing in its own turn."""

ROWS = (
    *SETTLED,
    *ENDED,
    *AT_LIMIT,
    NEAR_LIMIT,
    *_ESCALATED,
    *_STOPPED,
    *AFTER_LIMIT,
    *_SIGNALLED,
    *CI_ROWS,
    *REVIEW_ROWS,
    *_SILENT,
)
"""Matrix, in the order of the tries."""


OVERTAKING = (*SETTLED, *ENDED)
"""Rows that make an untyped message, or another try of a merge, pointless."""

INTERRUPTING = (_DIALOG, *AT_LIMIT, *_ASKS)
"""Rows that cannot wait until a message is typed. The message is then decided again."""

BY_NAME = {row.name: row for row in ROWS}
