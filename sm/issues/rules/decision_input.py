"""Input of a decision: what was seen of a session at one moment, and its project's policy."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, field

from sm.adapters.forge.model import CheckState, Hold, PullState, ReviewState
from sm.base.phase import Phase
from sm.issues.rules.allowance import Allowance
from sm.sessions.account_fault import Consequence
from sm.sessions.false_start import FalseStart
from sm.sessions.history import History
from sm.sessions.presence_rule import Hands
from sm.sessions.signs import Signs


class Life(StrEnum):
    """State of the agent's process."""

    ALIVE = "alive"
    GONE = "gone"


class Policy(Struct, frozen=True, kw_only=True):
    """Policy of the project, as it is configured: durations in seconds, counts, and who merges."""

    agent_timeout_s: float
    idle_s: float
    ci_timeout_s: float
    max_fixes: int
    review_required: bool
    review_timeout_s: float
    max_rounds: int
    merge_by_sm: bool
    merge_remind_s: float
    remind_s: float
    """Seconds between reminders of a person; 0: never."""
    escalation_timeout_s: float
    first_for_s: float
    """Seconds that a session has for its answer before people are asked."""
    max_recoveries: int
    recovery_pause_s: float
    repeats_ci: bool
    """Whether CI runs elsewhere, and sm may run it again."""


class DecisionInput(Struct, frozen=True):
    """Observation of a session.

    Times are in seconds since 1970; `write` is the id of the phase write.
    """

    now: float
    policy: Policy
    history: History = field(default_factory=History)
    session: Life = Life.ALIVE
    phase: Phase = Phase.NONE
    write: str = ""
    written_at: float = 0.0
    phase_lost: bool = False
    """Whether the phase file is missing, so that the agent's last phase is unknown."""
    idle_since: float | None = None
    """Time since which the agent is back at its prompt, by its Stop hook."""
    signs: Signs | None = None
    """Signs by the agent's hooks; None for an agent without hooks."""
    hands: Hands | None = None
    """People at its terminal; None: nobody has looked, as nothing was to be done to the session."""
    issue_open: bool = True
    blocked: bool = False
    """Whether it has the label that a person or a session's end sets, or `sm kill` ended it."""
    overtaken: bool = False
    """Whether another attempt has the issue by now; only a session placed here can be overtaken."""
    given_back: bool = False
    """Whether a person has ended the session, while the issue is still to be worked on."""
    pushed: bool = False
    """Whether the branch on the remote has commits that the primary branch lacks."""
    unpushed: bool = False
    """Whether the worktree has commits that the branch on the remote lacks."""
    outrun: bool = False
    """Whether that branch has commits that the worktree of a later attempt lacks."""
    pull: PullState | None = None
    head: str = ""
    conflicts: bool = False
    check: CheckState = CheckState.NONE
    check_at: float = 0.0
    """Time since which CI has this result."""
    check_overdue: bool = False
    """Whether CI was stopped then, as it took too long."""
    check_unapproved: bool = False
    """Whether CI begins once a person has approved it where it runs."""
    hold: Hold = Hold.NONE
    """Obstacle that keeps the forge itself from merging."""
    review: ReviewState | None = None
    """Verdict of the reviewers on `head`; a request for changes holds until it is withdrawn."""
    review_id: str = ""
    review_at: float = 0.0
    reply: str = ""
    """Id of a person's answer that still has to be handed over."""
    edit: str = ""
    """Id of a trusted person's edit of the issue that the agent does not know yet."""
    review_edit: str = ""
    """Id of a trusted person's edit of a known review that the agent does not know yet."""
    paused: bool = False
    """Whether a person has paused the session: nothing is decided."""
    resumed_at: float = 0.0
    """End of the last pause: everything that sm waits for has the whole time again."""
    said: str = ""
    """Id of the comments of trusted people on the pull request."""
    slot_at: float = 0.0
    """Time since which it holds a slot; now while it waits for one, 0 if it does neither."""
    slotless: bool = False
    """Whether it has work for its agent, and waits for a free slot."""
    allowance: Allowance | None = None
    """Allowance of what it may still spend; None: nothing limits it."""
    held_since: float = 0.0
    """Time since which the allowance holds it as it does."""
    first_there: bool = False
    """Whether the session that is asked before people lives, and is another one."""
    false_start: FalseStart | None = None
    """Its last start, if that has ended at once, like those of other sessions."""
    account: Consequence | None = None
    """Consequence of a fault of its agent's account; None: there is no fault, or the agent
    works."""
    rotates: bool = False
    """Whether its context is being replaced, and nothing else may be typed meanwhile."""
