"""Observes a session: its phase file, its process, its worktree, its history, and the forge."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from msgspec import Struct, structs

from sm.adapters.agent import screen
from sm.adapters.agent.prompt import Prompt
from sm.adapters.agent.screen import Screen
from sm.adapters.forge.model import (
    NO_CHECK,
    Check,
    CheckState,
    Hold,
    PullRequest,
    PullState,
    Review,
)
from sm.adapters.forge.trust import verdict
from sm.adapters.tmux import MissingPaneError, NoServerError
from sm.base.errors import StateError
from sm.base.phase import Phase, PhaseWrite
from sm.channels.channel import PersonReply
from sm.config.schema import ProjectSettings
from sm.issues import meters
from sm.issues.look import phase_file, reviews
from sm.issues.look.answers import list_replies
from sm.issues.look.discussion import HeardComments, read_heard_comments
from sm.issues.look.issue_text import read_edited
from sm.issues.look.slot import read_slot
from sm.issues.look.snapshot import Snapshot, is_open, snapshot
from sm.issues.rules.decision_input import Life, Policy
from sm.issues.rules.facts import Facts, name_run
from sm.issues.rules.material import Edited, EditedReview
from sm.messages import screen_state
from sm.sessions import (
    account_faults,
    agent,
    agent_process,
    agent_state,
    false_starts,
    pause,
    plan,
    registry,
    spending_hold,
    turn,
)
from sm.sessions.agent_state import AgentState, State
from sm.sessions.history import GIVEN_BACK, KILLED, OVERTAKEN, History, fold
from sm.sessions.session import AnySession, IssueSession
from sm.sessions.signs import Signs
from sm.store.files import open_guarded

IDLE_POLLS = 3
IDLE_POLL_S = 10.0
"""Length of a poll, in seconds: the protocol's `idle_prompt` rule is three of them."""


EMPTY_WRITE = PhaseWrite(Phase.NONE, "", "", "", 0.0)


class Observation(Struct, frozen=True):
    """Facts, and their sources for the texts that follow from them."""

    facts: Facts
    write: PhaseWrite
    pull: PullRequest | None
    review: Review | None
    replies: tuple[PersonReply, ...]
    problem: str
    """Reason why the phase file cannot be read, '' if it can."""
    unread: str = ""
    """Reason why the answers in a channel cannot be read, '' if they can."""
    question: str = ""
    """Text of a dialog in the agent's terminal."""
    edited: Edited | None = None
    """Issue as a trusted person has edited it, unknown to the agent so far."""
    edited_review: EditedReview | None = None
    """Review as a trusted person has edited it, unknown to the agent so far."""
    heard: HeardComments | None = None
    """Comments of trusted people on the pull request."""

    @property
    def check(self) -> Check:
        """Result of CI, without its log."""
        return self.pull.check if self.pull else NO_CHECK


def observe(session: IssueSession, *, newer_than: float = 0.0) -> Observation:
    """Return what is known now. Look at the forge again if the phase write is newer.

    Raises:
        TemporaryError: the forge or the remote cannot be reached.

    """
    found = _observe(session, newer_than)
    if found.facts.awaits and found.facts.pull is PullState.OPEN and not found.facts.pushed:
        # A look asks for the branches last: the merge may have come in between.
        found = _observe(session, time.time())
    return found


def _observe(session: IssueSession, newer_than: float) -> Observation:
    # Before the phase, so that the last phase of an agent that has died or stopped counts.
    life = Life.ALIVE if agent_process.is_reachable(session.tmux, session) else Life.GONE
    told = _signs(session, screen_state.correct(session).told)
    # A dialog may be open before the first hook is called, or has no payload.
    shows_more = told and (told.dialog_at is not None or told.starting_at is not None)
    shown = _screen(session) if shows_more else None
    if told and shown:
        told = _correct(told, shown)
    written = _read_phase(session, _read_corrected)
    seen = snapshot(session.project, newer_than=max(newer_than, written.at), session=session)
    found = _gather(session, told, written, seen)
    facts = structs.replace(found.facts, session=life)
    if facts.awaits:
        facts = _compare_with_remote(session, seen, facts)
    return structs.replace(found, facts=facts, question=shown.question if shown else "")


def recall(session: IssueSession, seen: Snapshot) -> Observation:
    """Observe for display, with an older look at the forge, and without git and tmux.

    So its `pushed` and `unpushed` mean nothing, and a session counts as alive with its process.
    """
    told = _signs(session, agent_state.read(session.dir))
    if told and told.starting_at is not None:
        # No hook tells of the dialog of a starting agent: it counts once it was noted.
        found = structs.replace(told, dialog_at=told.starting_at, doing=str(State.DIALOG))
        asked = fold(plan.read_receipts(session.dir)).escalations
        told = found if f"dialog:{told.starting_at:.3f}" in asked else told
    return _gather(session, told, _read_phase(session, _read_as_it_is), seen)


def _signs(session: IssueSession, said: AgentState) -> Signs | None:
    return turn.read(session.dir, said) if session.profile.hooks else None


class _Written(Struct, frozen=True):
    write: PhaseWrite = EMPTY_WRITE
    lost: bool = False
    problem: str = ""

    @property
    def at(self) -> float:
        if self.write.phase is Phase.NONE:
            return 0.0
        return min(self.write.at, time.time())  # a clock set back must not stop timers


def _read_phase(
    session: IssueSession, read: Callable[[IssueSession], PhaseWrite | None]
) -> _Written:
    try:
        write = read(session)
    except StateError as error:
        return _Written(problem=error.message)
    return _Written(lost=True) if write is None else _Written(write)


def _read_as_it_is(session: IssueSession) -> PhaseWrite | None:
    return phase_file.read(session.root, session.record.project, session.issue)


def _read_corrected(session: IssueSession) -> PhaseWrite | None:
    return phase_file.read_corrected(
        session.root,
        session.record.project,
        session.issue,
        not_before=session.record.created_at,
        is_known=lambda write: any(write == one.write for one in plan.read_receipts(session.dir)),
    )


def _correct(told: Signs, shown: Screen) -> Signs:
    """Correct the signs by the screen: before the first hook is called, none tells of a dialog.

    A menu for a login is no dialog: the next pass notes it as a fault of the account.
    """
    if shown.prompt is Prompt.DIALOG and told.starting_at is not None and not shown.login:
        return structs.replace(told, dialog_at=told.starting_at, doing=str(State.DIALOG))
    return told


def _screen(session: IssueSession) -> Screen | None:
    if (known := agent.load(session.dir)) is None:
        return None
    try:
        _, shown = session.tmux.look(known.pane_id, escapes=True)
    except (MissingPaneError, NoServerError):
        return None
    return screen.read(session.profile, shown)


def _gather(
    session: IssueSession, told: Signs | None, written: _Written, seen: Snapshot
) -> Observation:
    project = session.project
    write = written.write
    directory = session.dir
    history = fold(plan.read_receipts(directory))
    issue, pull = seen.issue(session.issue), _own_pull(session, seen, history)
    head, trust = (
        pull.head if pull else seen.head(session.record.branch),
        seen.trust(project.settings),
    )
    review = verdict(pull.reviews, head, trust) if pull else None
    if pull is not None:
        pull = structs.replace(pull, check=_judge(pull.check, head, history))
    check = pull.check if pull else NO_CHECK
    edited, edited_review = read_edited(directory), reviews.read_edited(directory)
    heard = read_heard_comments(directory)
    slot, now = read_slot(session), time.time()
    facts = Facts(
        now=now,
        policy=read_policy(project.settings),
        history=history,
        session=Life.ALIVE if agent.is_alive(directory) else Life.GONE,
        phase=write.phase,
        write=write.id if write.phase is not Phase.NONE else "",
        written_at=written.at,
        phase_lost=written.lost,
        signs=told,
        issue_open=is_open(seen, session.issue),
        overtaken=history.has(OVERTAKEN),
        given_back=history.has(GIVEN_BACK),
        blocked=history.has(KILLED)
        or (issue is not None and project.settings.labels.blocked in issue.labels),
        pull=pull.state if pull else None,
        head=head,
        conflicts=pull.conflicts if pull else False,
        hold=pull.hold if pull else Hold.NONE,
        check=check.state,
        check_at=check.at,
        check_overdue=check.overdue,
        check_unapproved=bool(check.unapproved),
        review=review.state if review else None,
        review_id=review.id if review else "",
        review_at=review.at if review else 0.0,
        edit=edited.id if edited else "",
        review_edit=edited_review.id if edited_review else "",
        paused=pause.is_paused(directory),
        resumed_at=pause.read_resumed_at(directory),
        said=heard.id if heard and pull and heard.pull == pull.number else "",
        slot_at=now if slot.waits_at is not None else slot.held_at or 0.0,
        slotless=slot.waits_at is not None,
        allowance=(allowance := meters.read_allowance(session)),
        held_since=spending_hold.find_stage_time(directory)
        if allowance and allowance.holds
        else 0.0,
        rotates=allowance is not None and os.path.lexists(directory.hold),
    )
    is_gone = facts.session is Life.GONE
    standing = account_faults.read_standing(session, facts.failure, gone=is_gone)
    facts = structs.replace(facts, account=standing)
    if is_gone:
        of_machine = false_starts.find_of_machine(session.root, session.name, now)
        facts = structs.replace(facts, false_start=of_machine)
    facts = structs.replace(facts, idle_since=_idle_since(session, facts))
    if (facts.open and facts.phase is Phase.ESCALATE) or facts.asks:
        facts = structs.replace(facts, first_there=find_first(session) is not None)
    asked = facts.escalation
    answers, unread = list_replies(session, issue, trust, asked) if asked else ((), "")
    facts = structs.replace(facts, reply=answers[-1].id if answers else "")
    return Observation(
        facts,
        write,
        pull,
        review,
        answers,
        written.problem,
        unread,
        edited=edited,
        edited_review=edited_review,
        heard=heard,
    )


def _judge(check: Check, head: str, history: History) -> Check:
    """Return a failure as broken, if CI itself is known to have failed in that run."""
    if check.state is not CheckState.FAILURE:
        return check
    reason = history.outages.get(name_run(head, check.at))
    return structs.replace(check, state=CheckState.BROKEN, step=reason) if reason else check


def _own_pull(session: IssueSession, seen: Snapshot, history: History) -> PullRequest | None:
    """Find the newest pull request of its branch; None if that was over before the session began.

    An issue that is opened again is worked on again, whatever became of its last pull request.
    """
    pull = seen.pull(session.record.branch)
    if pull is None or not 0 < pull.closed_at < session.record.created_at:
        return pull
    if pull.name in history.offered:
        return pull  # the forge's clock differs from this machine's
    # A merged one that still has its branch was never finished: the state was lost.
    unfinished = pull.state is PullState.MERGED and seen.head(session.record.branch) == pull.head
    return pull if unfinished else None


def _compare_with_remote(session: IssueSession, seen: Snapshot, facts: Facts) -> Facts:
    """Add whether the remote's branch has the work of the worktree."""
    if facts.merged and facts.left_alone:  # the session ends: nothing is asked of the agent
        return structs.replace(facts, pushed=True)
    record, tip = session.record, _tip(session)
    base, head = seen.head(record.base), seen.head(record.branch)
    there, branch = (head, record.branch) if head else (base, record.base)
    unpushed = bool(tip) and tip != head and not _contains(session, there, branch, tip)
    pushed = bool(head) and not _is_in_base(session, facts, base, head)
    outrun = bool(head and tip) and _is_outrun(session, head, tip)
    return structs.replace(facts, pushed=pushed, unpushed=unpushed, outrun=outrun)


def _is_outrun(session: IssueSession, head: str, tip: str) -> bool:
    """Whether the remote's branch has commits that a later attempt lacks; never for a first one.

    An earlier attempt that goes on may push for some seconds more. If people push to the branch of
    a session, it is told as of any other refused push.
    """
    if session.attempt < 2 or head == tip:
        return False
    return session.project.git.ancestry(head, tip) is False  # None: the remote has gone on since


def _is_in_base(session: IssueSession, facts: Facts, base: str, head: str) -> bool:
    """Whether the base has all that the branch has.

    The embedded forge ends a pull request as soon as its base has the head. So for an open one it
    is enough to look for the head in the base as last fetched; others may push to the base all the
    time.
    """
    record, project = session.record, session.project
    on_offer = facts.pull is PullState.OPEN and facts.head == head
    if on_offer and not project.settings.forge.is_elsewhere:
        known = project.git.ancestry(head, f"refs/remotes/{record.remote}/{record.base}")
        if known is not None:
            return known
    return _contains(session, base, record.base, head)


def _tip(session: IssueSession) -> str:
    """Return the session's last commit: the branch's if the worktree was deleted."""
    if (session.worktree / ".git").exists():
        return session.project.git.at(session.worktree).rev_parse("HEAD") or ""
    return session.project.git.rev_parse(f"refs/heads/{session.record.branch}") or ""


def _contains(session: IssueSession, there: str, branch: str, commit: str) -> bool:
    """Whether the remote's commit `there` of `branch` contains `commit`."""
    git = session.project.git
    found = git.ancestry(commit, there)
    if found is None and git.rev_parse(there) is None:  # others have pushed since the last fetch
        git.fetch_branch(session.record.remote, branch)
        found = git.ancestry(commit, there)
    return found or False


def _idle_since(session: IssueSession, facts: Facts) -> float | None:
    """Return since when the agent is at rest, by its hooks, or else by the time of the idle marker.

    A marker from before the last start or injection says nothing.
    """
    if facts.signs:
        return facts.signs.ended_at
    try:
        with open_guarded(session.root.idle_marker(session.name), os.O_RDONLY) as fd:
            marked_at = os.fstat(fd).st_mtime
    except (FileNotFoundError, StateError):  # another user's file says nothing
        return None
    return marked_at if marked_at > facts.addressed_at else None


def read_policy(project: ProjectSettings) -> Policy:
    """Return what the project decides by."""
    p = project
    return Policy(
        agent_timeout_s=p.agent.timeout_s,
        idle_s=IDLE_POLLS * IDLE_POLL_S,
        ci_timeout_s=p.ci.timeout_s,
        max_fixes=p.ci.max_fixes,
        review_required=p.review.required,
        review_timeout_s=p.review.timeout_s,
        max_rounds=p.review.max_rounds,
        merge_by_sm=p.merge.by == "sm",
        merge_remind_s=p.merge.remind_s,
        remind_s=p.escalation.remind_s,
        escalation_timeout_s=p.escalation.timeout_s,
        first_for_s=p.escalation.first_for_s,
        max_recoveries=p.recovery.max,
        recovery_pause_s=p.recovery.pause_s,
        repeats_ci=p.forge.is_elsewhere,
    )


def find_first(session: IssueSession) -> AnySession | None:
    """Return the session that is asked what `session` asks; None: people are asked at once.

    Never the asking session itself, and its agent runs.
    """
    address = session.project.settings.escalation.first
    if not address:
        return None
    for one in registry.list_all(session.root, report=lambda _: None):
        is_meant = address in (one.name, one.address) and one.name != session.name
        if is_meant and one.is_living and agent.is_alive(one.dir):
            return one
    return None
