"""Material for texts about an issue. Pure."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from sm.adapters.forge.model import (
    NO_CHECK,
    Check,
    Comment,
    Issue,
    PullRequest,
    Review,
    ReviewState,
)
from sm.base.phase import Phase
from sm.issues.rules.allowance import Allowance, TurnAtLimit
from sm.issues.rules.facts import CONTEXT_REFUSED


class LongText(StrEnum):
    """Long text that the last look at the forge has not kept: the issue's is in the state."""

    ISSUE = "issue"
    COMMENTS = "comments"
    LOG = "log"
    REVIEW = "review"
    DISCUSSION = "discussion"
    MERGE = "merge"
    CONFLICTS = "conflicts"


TAKE_OVER = (LongText.ISSUE, LongText.LOG, LongText.REVIEW, LongText.DISCUSSION)
SOURCES: dict[str, tuple[LongText, ...]] = {
    "start": (LongText.ISSUE,),
    "recovery": TAKE_OVER,
    CONTEXT_REFUSED: TAKE_OVER,
    "reply": (LongText.COMMENTS,),
    "edited": (LongText.ISSUE,),
    "ci-failed": (LongText.LOG,),
    "ci-exhausted": (LongText.LOG,),
    "review-changes": (LongText.REVIEW,),
    "merge-held": (LongText.MERGE,),
    "queue-dropped": (LongText.MERGE,),
    "conflict": (LongText.CONFLICTS,),
    "not-merged": (LongText.CONFLICTS,),
    "merge-reminder": (LongText.CONFLICTS,),
}
"""Long texts that the texts quote, by their names. A text that is missing here quotes none."""


class GitState(Struct, frozen=True):
    """State of the work by git, as its own commands print it."""

    diff_stat: str = ""
    log: str = ""
    status: str = ""


class Edited(Struct, frozen=True):
    """Edited title and text, of which the agent is still to be told; `editors` made the change.

    '' among them: the forge does not say who. No other edit has this `id`.
    """

    id: str = ""
    title: str = ""
    body: str = ""
    editors: tuple[str, ...] = ()


NO_REVIEW = Review("", "", 0.0, ReviewState.COMMENTED, "")


class EditedReview(Struct, frozen=True):
    """Review `before` an edit and `now`; the agent is still to be told of the edit.

    `editors` made the change, as in `Edited`. No other edit has this `id`.
    """

    id: str = ""
    before: Review = NO_REVIEW
    now: Review = NO_REVIEW
    editors: tuple[str, ...] = ()


class Material(Struct, frozen=True):
    """Material for texts. `nonce` marks quoted text; its author cannot guess it.

    `issue` is as the agent knows it. `issue`, `check` and `review` are whole only if they were
    looked up, see `SOURCES`.
    """

    project: str
    issue: Issue
    branch: str
    base: str
    remote: str
    phase_file: str
    nonce: str
    merge_command: str = ""
    answer_help: str = ""
    pull: PullRequest | None = None
    check: Check = NO_CHECK
    review: Review | None = None
    said: tuple[Comment, ...] = ()
    """Comments of trusted people on the pull request that the agent is told now."""
    discussion: tuple[Comment, ...] = ()
    """All recent comments of trusted people there."""
    phase: Phase = Phase.NONE
    phase_text: str = ""
    answered: bool = False
    """Whether the phase had its answer before the session that got it died."""
    reason: str = ""
    reply: str = ""
    answered_by: str = ""
    """Session whose agent has answered alone; '' if a person has."""
    words: str = ""
    """Everything that the agent has said with its question."""
    first_until: str = ""
    """Time of day until which a session is asked before people."""
    trouble: str = ""
    remark: str = ""
    git: GitState = GitState()
    tail: str = ""
    log_lines: int = 200
    fixes_left: int = 0
    repeated: bool = True
    """Whether CI was run once more after it had failed itself."""
    worktree: str = ""
    protocol_known: bool = False
    """Whether the agent's system prompt has the protocol."""
    dialog: str = ""
    """Question of the dialog in the agent's terminal."""
    question: str = ""
    """Question with which the agent has ended its turn."""
    failure: str = ""
    """Reason why the agent's last turn failed, in our words and its own."""
    until: str = ""
    """Time of day until which the session is parked."""
    attach_command: str = ""
    reviewed_at: str = ""
    """Page of the pull request, if a person can review it nowhere else."""
    asked_row: str = "escalate"
    """Row of the matrix that asked the question of a reminder."""
    locked_out: bool = False
    """Whether the agent has no access to its API."""
    stuck: bool = False
    """Whether sm cannot type to the agent."""
    edited: Edited = Edited()
    """Issue as a trusted person has edited it, if the text is about that."""
    edited_review: EditedReview = EditedReview()
    """Review as a trusted person has edited it, if the text is about that."""
    channels: tuple[str, ...] = ()
    """Ways by which people follow its work, as far as the agent has to know of them."""
    row: str = ""
    """Row of the matrix that the text is for."""
    earlier: bool = False
    """Whether an earlier session has worked on the issue. How that one ended is not known here."""
    moved: str = ""
    """Words about an attempt on another host, whose work the agent goes on with."""
    killed: bool = False
    """Whether a person has ended the session by `sm kill`."""
    unblock_command: str = ""
    """Command that has the issue worked on again once its session has ended."""
    conflicts: tuple[str, ...] = ()
    """Files in which its branch conflicts with the base."""
    allowance: Allowance | None = None
    """Allowance of what it may still spend."""
    turn: TurnAtLimit | None = None
    """State of the agent's turn while a limit keeps it from spending."""
    limit_until: str = ""
    """Time of day until which a limit holds it; '' if a person decides."""
    document: str = ""
    """Future or present path of its handoff document."""
    document_form: str = ""
    """Form of such a document, for the agent."""
    links: tuple[str, ...] = ()
    """Pages of the pull request and of the issue, if the forge has them."""


def cite_pull(m: Material) -> str:
    """Return the number of the pull request for a command."""
    return str(m.pull.number) if m.pull else "?"


def name_pull(m: Material) -> str:
    """Return the pull request's number as its forge writes it in texts."""
    return m.pull.name if m.pull else "#?"
