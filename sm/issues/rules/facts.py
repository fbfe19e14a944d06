"""Facts of a session at one moment, as far as decisions depend on them."""

from __future__ import annotations

from sm.adapters.forge.model import CheckState, Hold, PullState, ReviewState
from sm.base.phase import Phase
from sm.base.refusal import Refusal
from sm.issues.rules.decision_input import DecisionInput, Life
from sm.sessions.account_fault import AccountCourse
from sm.sessions.failure import Failure, FailureCause
from sm.sessions.history import KILLED, LIMIT, Escalation
from sm.sessions.presence_rule import Disturbance, find_hindrance
from sm.sessions.signs import DIALOG_PATIENCE_S, PATIENCE_S, SILENT

QUEUE_S = 60.0
"""Seconds that a forge may take to show what it has put into its merge queue."""
REMINDERS = 2
"""Greatest number of reminders of the protocol for an agent whose turn ended without a phase."""
CONTEXT_REFUSED, ONCE = "context-refused", "once"
"""Row by which a refused conversation is given up, and its only key."""


def name_run(head: str, at: float) -> str:
    """Return the name of a run of CI on the commit `head`, by the time of its result."""
    return f"{head}@{at:.3f}"


class Facts(DecisionInput, frozen=True):
    """Facts: what was seen of the session, and what follows from it for the rows of the matrix."""

    @property
    def answered(self) -> bool:
        """Whether the current phase write has its answer."""
        return self.write in self.history.answered

    @property
    def escalated(self) -> bool:
        """Whether a person was asked, and neither the person nor the agent has moved since."""
        return self.escalation is not None

    @property
    def escalation(self) -> Escalation | None:
        """Open question to a person: about the terminal, else about the current phase write."""
        asked = self.history.escalations
        matters = (self.halted, self.matter, self.outage, self.silence)
        keys = (*filter(None, matters), self.write)
        return next((asked[key] for key in keys if key in asked), None)

    @property
    def consulted(self) -> Escalation | None:
        """Open question of the agent that only a session was asked so far."""
        asked = self.history.escalations
        keys = (key for key in (self.matter, self.write) if key in asked and asked[key].first)
        return next((asked[key] for key in keys), None)

    @property
    def first_until(self) -> float:
        """Time until which only a session is asked, not people; 0: no session is."""
        asked = self.consulted
        if asked is None or not self.first_there:
            return 0.0
        return max(asked.at, self.resumed_at) + self.policy.first_for_s

    @property
    def asks_first(self) -> bool:
        """Whether a session has been asked, and people are not while it may answer."""
        has_answer = self.consulted is not None and bool(self.reply)
        return has_answer or self.now < self.first_until

    @property
    def about(self) -> str:
        """Matter of the question to a person: the key of its escalation."""
        return self.escalation.write if self.escalation else self.write

    @property
    def matter(self) -> str:
        """Matter of the agent's terminal that a person must settle; '' once it is over."""
        failure = self.failure
        if self.dialog_at is not None:
            return f"dialog:{self.dialog_at:.3f}"
        if failure and self.account and self.account.way is not AccountCourse.ASK:
            return ""  # it is the account's
        if failure and (failure.for_person or self.account):
            return f"failure:{failure.at:.3f}"
        if failure and failure.lasting:
            return f"failure:{failure.since:.3f}"
        return f"question:{self.ended_at:.3f}" if self.asks else ""

    @property
    def brake(self) -> str:
        """Matter of the limit that keeps it from spending; '' if it may go on."""
        limit = self.allowance
        return f"{LIMIT}{limit.matter}" if limit and limit.holds else ""

    @property
    def halted(self) -> str:
        """Matter of the limit that stopped it, also once that is over, until it has gone on."""
        return self.brake or (self.history.halt.matter if self.history.halt else "")

    @property
    def asks(self) -> bool:
        """Whether the agent has ended its turn with a question, and without a phase."""
        return self.signs is not None and bool(self.signs.asks) and self._has_rested

    @property
    def silence(self) -> str:
        """Matter of an agent that does nothing while a person is attached; '' if sm acts.

        It is over when the agent shows a sign of life, or is told something.
        """
        since = self.life_at if self.idle_since is None else self.idle_since
        return "" if self.open or self.session is Life.GONE else f"silence:{since:.3f}"

    @property
    def unwatched(self) -> bool:
        """Whether sm would end the agent for doing nothing, were no person attached to it."""
        if self.hands is None or self.session is Life.GONE or not (self.idle or self.stale):
            return False
        return self.hinders(Disturbance.JUDGE) is Refusal.ATTACHED

    def hinders(self, deed: Disturbance) -> Refusal | None:
        """Return why people at the terminal keep sm from that; None if not, or if none looked."""
        # A person who ends the session by a command knows what is on the screen.
        if self.hands is None or self.history.has(KILLED):
            return None
        return find_hindrance(deed, self.hands, self.now)

    @property
    def outage(self) -> str:
        """Matter of CI itself that a person must settle; '' once CI has a result.

        Each failed run is a different matter.
        """
        broken = self.awaits and self.check is CheckState.BROKEN
        return f"ci:{self.write}:{self.check_at:.3f}" if broken else ""

    @property
    def ci_unapproved(self) -> bool:
        """Whether the result that sm waits for comes once a person has approved CI."""
        return self.awaits and self.check is CheckState.PENDING and self.check_unapproved

    @property
    def rerun_until(self) -> float:
        """Time until which sm waits for the run that it has begun after this one; 0: none was."""
        begun_at = self.history.reruns.get(self.run) if self.outage else None
        if begun_at is None:
            return 0.0
        return max(begun_at, self.resumed_at) + self.policy.ci_timeout_s

    @property
    def dialog_at(self) -> float | None:
        """Time since which the agent's terminal shows a dialog."""
        return self.signs.dialog_at if self.signs else None

    @property
    def dialog_due_at(self) -> float:
        """Time to tell people of the open dialog; a person at the terminal sees it there."""
        is_seen = self.hands is not None and self.hands.attached
        patience_s = PATIENCE_S if is_seen else DIALOG_PATIENCE_S
        return max(self.dialog_at or 0.0, self.resumed_at) + patience_s

    @property
    def question_due_at(self) -> float:
        """Time to ask a person the question with which the agent has ended its turn."""
        return max(self.ended_at, self.resumed_at) + PATIENCE_S

    @property
    def failure(self) -> Failure | None:
        """Failure of the agent's last turn, if it failed."""
        return self.signs.failure if self.signs else None

    @property
    def gives_up(self) -> bool:
        """Whether the agent's conversation is given up, as the API refuses it: once."""
        if self.failure is None or not self.failure.is_of_conversation:
            return False
        is_left = self.history.recoveries < self.policy.max_recoveries
        return is_left and f"{CONTEXT_REFUSED}:{ONCE}" not in self.history.done

    @property
    def parked(self) -> bool:
        """Whether the agent cannot work now, but will be able to later."""
        if self.account:
            return self.account.way is AccountCourse.REST
        failure = self.failure
        return failure is not None and not failure.for_person and self.now < failure.until

    @property
    def parked_until(self) -> float:
        """Earliest time at which it is no longer parked."""
        if self.account:
            return self.account.until
        return self.failure.until if self.failure else 0.0

    @property
    def told_until(self) -> float:
        """Time until which people are told that it is parked: not before its own client has said.

        A fault of the account that has just begun is looked at again within a second.
        """
        return max(self.parked_until, self.failure.until if self.failure else 0.0)

    @property
    def has_stale_login(self) -> bool:
        """Whether its client is to be restarted, as it alone has no access to its API."""
        found = self.account is not None and self.account.way is AccountCourse.RESTART
        return found and self.failure is not None and self.session is Life.ALIVE

    @property
    def unreachable(self) -> bool:
        """Whether a message to the agent would be useless now."""
        failed = self.failure is not None and self.failure.for_person
        if self.account:
            failed = self.account.way is AccountCourse.ASK
        return self.parked or failed or self.dialog_at is not None

    @property
    def answerable(self) -> bool:
        """Whether sm can hand over a person's answer: an open dialog would take it."""
        return not self.parked and self.dialog_at is None

    @property
    def remark(self) -> str:
        """Key of the first remark that a person should know and was not told yet."""
        told = self.history.done
        return next((key for key in self.history.remarks if f"remark:{key}" not in told), "")

    @property
    def resumable(self) -> bool:
        """Whether the agent worked when its turn failed, and a retry may help now."""
        if self.failure is None or self.unreachable or self.open:
            return False
        return self.write not in self.history.escalations

    @property
    def fell_silent(self) -> bool:
        """Whether the agent has ended its turn although sm waits for its next phase."""
        return self._has_rested and self.working and not self.asks

    @property
    def unheeded(self) -> bool:
        """Whether the agent has ended its turn so after each reminder that it gets."""
        return self.fell_silent and self.history.reminders >= REMINDERS

    @property
    def ended_at(self) -> float:
        """End of the agent's turn; 0 if it goes on, no hook tells, or nobody knows any more."""
        return (self.signs.ended_at if self.signs else None) or 0.0

    @property
    def _has_rested(self) -> bool:
        # A clock that was set back since leaves 0: long ago.
        ended_at = self.signs.ended_at if self.signs else None
        return ended_at is not None and ended_at <= self.now and not self.open

    @property
    def open(self) -> bool:
        """Whether the agent waits for us: its phase has no answer yet."""
        return self.phase is not Phase.NONE and not self.answered

    @property
    def working(self) -> bool:
        """Whether it is the agent's turn."""
        return not self.open and not self.escalated

    @property
    def turn_runs(self) -> bool:
        """Whether its hooks tell that the agent is at work, whatever phase it has written.

        One that gives no sign for long may have ended its turn without a word.
        """
        signs = self.signs
        return signs is not None and signs.busy and self.now < self.sign_over_at

    @property
    def is_at_work(self) -> bool:
        """Whether the agent works, or is about to begin: then its session holds a slot.

        It does not while it waits for CI or for a person, or may spend nothing. But an agent whose
        turn runs is at work: somebody has typed to it, or it has not finished yet. At a usage limit
        it keeps its slot: another session would begin, and meet the same limit.
        """
        if self.turn_runs or not self.history.started_at:
            return True
        failure = self.failure
        # A person has to see to a failed turn, or is told of it.
        is_stopped = failure is not None and (
            failure.for_person or (failure.lasting and failure.fault is not FailureCause.LIMIT)
        )
        waits = self.brake or self.asks or self.dialog_at is not None or is_stopped
        return self.working and not waits

    @property
    def sign_over_at(self) -> float:
        """Time until which its last sign of life counts."""
        return (self.signs or SILENT).active_at + self.policy.agent_timeout_s

    @property
    def life_at(self) -> float:
        """Time of the last sign of life or of what should have caused one; or a pause's end."""
        signs = self.signs or SILENT
        # Nothing is expected of an agent whose work waits for a slot.
        expected_at = max(self.parked_until, self.slot_at)
        return max(
            self.addressed_at,
            self.history.nudged_at,
            signs.active_at,
            expected_at,
            self.resumed_at,
        )

    @property
    def addressed_at(self) -> float:
        """Time when the agent was last told something new, or wrote a phase."""
        answer = self.history.answer
        return max(self.written_at, self.history.started_at, answer.at if answer else 0.0)

    @property
    def stale(self) -> bool:
        """Whether the agent should have shown a sign of life by now."""
        rests = self.asks or self.brake or (self.account and self.parked)
        working = self.working and self.dialog_at is None and not rests
        return working and self.now >= self.life_at + self.policy.agent_timeout_s

    @property
    def crashed(self) -> bool:
        """Whether no agent is working although one should.

        An agent that may spend nothing, or whose account has no access to its API, should not work.

        False while no start is on record. Then dev-poll finishes the start, and goes on with an
        agent that lives: only the receipts may be lost.
        """
        ended = self.session is Life.GONE or self.stale
        rests = bool(self.brake) or (self.account is not None and self.parked)
        return self.history.started_at > 0 and ended and not rests

    @property
    def pause_until(self) -> float:
        """Earliest time of the next recovery. The first has no pause, then each pause doubles."""
        if self.false_start:
            return self.false_start.find_next(self.policy.recovery_pause_s)
        if not self.history.recoveries:
            return 0.0
        pause = self.policy.recovery_pause_s * 2.0 ** (self.history.recoveries - 1)
        return self.history.started_at + pause

    @property
    def recoverable(self) -> bool:
        """Whether the agent may be restarted once more."""
        most = self.policy.max_recoveries
        is_left = self.history.recoveries < most or (self.false_start is not None and most > 0)
        return self.crashed and is_left

    @property
    def resumes(self) -> str:
        """Id of the agent's own session that its restart is to resume, '' for a new one.

        A silent one would be silent again, and one that could not be resumed once is not tried a
        second time, unless no agent could be started here. What the API refuses, it would refuse
        again.
        """
        known = self.signs.context if self.signs else ""
        if self.has_stale_login:
            return known
        if self.session is not Life.GONE or self.history.recoveries:
            return ""
        if self.failure and self.failure.fault is FailureCause.CONVERSATION:
            return ""
        return known or (self.false_start.resumable if self.false_start else "")

    @property
    def awaits_ci(self) -> bool:
        """Whether the agent waits for CI."""
        return self.open and self.phase is Phase.AWAITING_CI

    @property
    def awaits_review(self) -> bool:
        """Whether the agent waits for a reviewer."""
        return self.open and self.phase is Phase.AWAITING_REVIEW

    @property
    def awaits(self) -> bool:
        """Whether the agent waits for anything that a pushed branch can bring."""
        return self.awaits_ci or self.awaits_review

    @property
    def merged(self) -> bool:
        """Whether the pull request is merged."""
        return self.pull is PullState.MERGED

    @property
    def left_alone(self) -> bool:
        """Whether no agent is about to write PHASE:done, or a person does not wait for it."""
        if self.history.has(KILLED):
            return True
        late = self.now >= self.life_at + self.policy.merge_remind_s
        rests = self.parked or bool(self.brake and not self.turn_runs)
        return self.session is Life.GONE or not self.working or rests or late

    @property
    def green(self) -> bool:
        """Whether there is something to merge, and no check prevents it."""
        return self.pull is PullState.OPEN and self.check in (CheckState.SUCCESS, CheckState.NONE)

    @property
    def review_waits(self) -> bool:
        """Whether nothing is missing but a reviewer's word.

        A request for changes stands until its author takes it back. Once the agent was told of it
        and asks again, it is the reviewer's turn again.
        """
        if self.review is ReviewState.CHANGES_REQUESTED:
            said = not self.history.has(f"review-changes:{self.review_id}")
        else:
            said = self.review is ReviewState.APPROVED
        ready = self.green and not self.conflicts
        return ready and self.policy.review_required and not said

    @property
    def merges_when_approved(self) -> bool:
        """Whether nothing but an approval is missing for sm to merge it."""
        waits = self.awaits_review and self.review_waits and self.hold is Hold.NONE
        return waits and self.policy.merge_by_sm and not (self.paused or self.brake)

    @property
    def to_merge(self) -> bool:
        """Whether the project asks for nothing more before the merge; the forge still may."""
        return self.approved and self.green

    @property
    def queued(self) -> bool:
        """Whether the forge has it in its merge queue."""
        return self.pull is PullState.OPEN and self.hold is Hold.QUEUED

    @property
    def merge_held_until(self) -> float:
        """Time to tell a person what keeps the forge from merging; a queue takes its time."""
        policy = self.policy
        patience_s = policy.review_timeout_s if self.queued else policy.merge_remind_s
        since = max(self.written_at, self.check_at, self.review_at, self.resumed_at)
        return since + patience_s

    @property
    def merge_held(self) -> bool:
        """Whether the forge holds back a pull request that waits for nothing else."""
        if self.open and self.phase is Phase.DONE:
            return self.queued
        # The queue of GitLab runs CI on the head again.
        queued = self.queued and (self.green or self.check is CheckState.PENDING)
        held = queued or (self.green and self.hold is Hold.BLOCKED)
        return self.awaits_review and self.approved and held

    @property
    def dropped_at(self) -> float:
        """Time from which the queue that took it must show it; 0: it is there, or never was."""
        queued_at = self.history.queued.get(f"approved-merge:{self.write}:{self.head}")
        gone = queued_at is not None and self.pull is PullState.OPEN and not self.queued
        return max(queued_at, self.resumed_at) + QUEUE_S if queued_at is not None and gone else 0.0

    @property
    def run(self) -> str:
        """Id of the run of CI with the known result: its commit and time."""
        return name_run(self.head, self.check_at)

    @property
    def rerun(self) -> bool:
        """Whether the agent got an earlier run of the same commit, and not this one.

        An agent that asks again without a new commit gets the same run again.
        """
        runs = self.history.runs
        return self.run not in runs and any(one.startswith(f"{self.head}@") for one in runs)

    @property
    def red(self) -> bool:
        """Whether CI failed."""
        return self.check is CheckState.FAILURE

    @property
    def fixable(self) -> bool:
        """Whether the agent may get one more failure."""
        return self.history.fixes < self.policy.max_fixes

    @property
    def approved(self) -> bool:
        """Whether the reviewers agree, or no review is required."""
        if self.review is ReviewState.CHANGES_REQUESTED:
            return False
        return self.review is ReviewState.APPROVED or not self.policy.review_required

    @property
    def changes_requested(self) -> bool:
        """Whether a reviewer wants changes, however far the agent says it is."""
        return self.review is ReviewState.CHANGES_REQUESTED and not self.merged

    @property
    def idle(self) -> bool:
        """Whether the agent is back at its prompt and has never written a phase.

        If hooks report the end of its turn, sm reminds it of the protocol first.
        """
        if self.phase is not Phase.NONE or not self.working or self.idle_since is None:
            return False
        if self.brake:
            return False
        if self.signs and not self.unheeded:
            return False
        return self.now >= self.idle_due_at

    @property
    def idle_due_at(self) -> float:
        """Time when an agent that has never written a phase counts as idle."""
        return max(self.idle_since or 0.0, self.resumed_at, self.slot_at) + self.policy.idle_s

    @property
    def asked_at(self) -> float:
        """Time when a person was asked."""
        return self.escalation.at if self.escalation else 0.0

    @property
    def told_at(self) -> float:
        """Time when the person last heard of the question."""
        return self.escalation.told_at if self.escalation else 0.0

    @property
    def remind_at(self) -> float:
        """Time when sm is to remind the person."""
        if not self.policy.remind_s or (self.escalation and self.escalation.first):
            return float("inf")
        return max(self.told_at, self.resumed_at) + self.policy.remind_s

    @property
    def answer_due_at(self) -> float:
        """Time when a person's answer is late; never if the agent cannot use it by itself."""
        if self.brake or self.account or (self.escalation and self.escalation.first):
            return float("inf")
        return max(self.asked_at, self.resumed_at) + self.policy.escalation_timeout_s

    @property
    def reminders(self) -> int:
        """Number of times that sm has reminded the person."""
        return self.escalation.reminders if self.escalation else 0

    @property
    def ci_due_at(self) -> float:
        """Time when a result of CI is late; a new run has the whole time again."""
        if self.check_overdue:
            return self.check_at
        started_at = self.check_at if self.check is CheckState.PENDING else 0.0
        return max(self.written_at, started_at, self.resumed_at) + self.policy.ci_timeout_s

    @property
    def review_due_at(self) -> float:
        """Time when a review is late."""
        return max(self.written_at, self.resumed_at) + self.policy.review_timeout_s

    def unmerged_after(self, row: str) -> bool:
        """Say whether a mergeable pull request is still open `merge_remind_s` after `row`."""
        answer = self.history.answer
        if answer is None or answer.row != row or answer.write != self.write:
            return False
        mergeable = self.to_merge and self.hold is Hold.NONE and not (self.asks or self.brake)
        since = max(answer.at, self.resumed_at)
        return mergeable and self.now >= since + self.policy.merge_remind_s
