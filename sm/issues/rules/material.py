"""The material for texts about an issue. Pure."""

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


class Source(StrEnum):
    """A long text that the last look at the forge has not kept: the issue's is in the state."""

    ISSUE = "issue"
    COMMENTS = "comments"
    LOG = "log"
    REVIEW = "review"
    DISCUSSION = "discussion"
    MERGE = "merge"
    CONFLICTS = "conflicts"


TAKE_OVER = (Source.ISSUE, Source.LOG, Source.REVIEW, Source.DISCUSSION)
SOURCES: dict[str, tuple[Source, ...]] = {
    "start": (Source.ISSUE,),
    "recovery": TAKE_OVER,
    CONTEXT_REFUSED: TAKE_OVER,
    "reply": (Source.COMMENTS,),
    "edited": (Source.ISSUE,),
    "ci-failed": (Source.LOG,),
    "ci-exhausted": (Source.LOG,),
    "review-changes": (Source.REVIEW,),
    "merge-held": (Source.MERGE,),
    "queue-dropped": (Source.MERGE,),
    "conflict": (Source.CONFLICTS,),
    "not-merged": (Source.CONFLICTS,),
    "merge-reminder": (Source.CONFLICTS,),
}
"""What the texts quote, by their names. A text that is not here quotes none of it."""


class GitState(Struct, frozen=True):
    """What git says about the work so far, as its own commands print it."""

    diff_stat: str = ""
    log: str = ""
    status: str = ""


class Edited(Struct, frozen=True):
    """A title and a text, of which the agent is still to be told; `editors` have made the change.

    '' among them: the forge does not say who. No other edit has this `id`.
    """

    id: str = ""
    title: str = ""
    body: str = ""
    editors: tuple[str, ...] = ()


NO_REVIEW = Review("", "", 0.0, ReviewState.COMMENTED, "")


class EditedReview(Struct, frozen=True):
    """A review `before` an edit and `now`, of which the agent is still to be told.

    `editors` have made the change, as in `Edited`. No other edit has this `id`.
    """

    id: str = ""
    before: Review = NO_REVIEW
    now: Review = NO_REVIEW
    editors: tuple[str, ...] = ()


class Material(Struct, frozen=True):
    """What texts are made of. `nonce` marks quoted text and cannot be guessed by its author.

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
    """What trusted people have said on the pull request, and the agent is told now."""
    discussion: tuple[Comment, ...] = ()
    """All that they have said there lately."""
    phase: Phase = Phase.NONE
    phase_text: str = ""
    answered: bool = False
    """Whether the phase had its answer before the session that got it died."""
    reason: str = ""
    reply: str = ""
    answered_by: str = ""
    """The session whose agent has answered alone; '' if a person has."""
    words: str = ""
    """All that the agent has said with its question."""
    first_until: str = ""
    """Until when a session is asked before people, as a time of day."""
    trouble: str = ""
    remark: str = ""
    git: GitState = GitState()
    tail: str = ""
    log_lines: int = 200
    fixes_left: int = 0
    repeated: bool = True
    """Whether CI that has failed itself was run once more."""
    worktree: str = ""
    protocol_known: bool = False
    """Whether the agent's system prompt has the protocol."""
    dialog: str = ""
    """What the dialog in the agent's terminal asks."""
    question: str = ""
    """The question with which the agent has ended its turn."""
    failure: str = ""
    """Why the agent's last turn failed, in our words and its own."""
    until: str = ""
    """Until when the session is parked, as a time of day."""
    attach_command: str = ""
    reviewed_at: str = ""
    """The page of the pull request, if a person can review it nowhere else."""
    asked_row: str = "escalate"
    """The row of the matrix that asked the question of a reminder."""
    locked_out: bool = False
    """Whether the agent has no access to its API."""
    stuck: bool = False
    """Whether sm cannot type to the agent."""
    edited: Edited = Edited()
    """The issue as a trusted person has edited it, if the text is about that."""
    edited_review: EditedReview = EditedReview()
    """The same of a review."""
    channels: tuple[str, ...] = ()
    """What the agent has to know of the ways by which people follow its work."""
    row: str = ""
    """The row of the matrix that the text is for."""
    earlier: bool = False
    """An earlier session has worked on the issue. How that one ended is not known here."""
    moved: str = ""
    """What there is to say of an attempt on another host, whose work the agent goes on with."""
    killed: bool = False
    """Whether a person has ended the session by `sm kill`."""
    unblock_command: str = ""
    """What has the issue worked on again once its session has ended."""
    conflicts: tuple[str, ...] = ()
    """The files in which its branch conflicts with the base."""
    allowance: Allowance | None = None
    """What it may still spend."""
    turn: TurnAtLimit | None = None
    """What becomes of the agent's turn while a limit keeps it from spending."""
    limit_until: str = ""
    """Until when a limit holds it, as a time of day; '' if a person decides."""
    document: str = ""
    """Where its handoff document is to be, or is."""
    document_form: str = ""
    """What such a document consists of, for the agent."""
    links: tuple[str, ...] = ()
    """The pages of the pull request and of the issue, as far as the forge has such."""


def cite_pull(m: Material) -> str:
    """Return the number of the pull request for a command."""
    return str(m.pull.number) if m.pull else "?"


def name_pull(m: Material) -> str:
    """Return the pull request's number as its forge writes it in texts."""
    return m.pull.name if m.pull else "#?"
