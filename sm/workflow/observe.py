"""Observe a session: its phase file, its process, its worktree, its history, and the forge."""

from __future__ import annotations

import os
import time

from msgspec import Struct, structs

from sm.adapters.agent import screen
from sm.adapters.agent.screen import Prompt, Screen
from sm.adapters.tmux import MissingPaneError, NoServerError
from sm.errors import StateError
from sm.facts import Facts, Life, Signs
from sm.forge import NO_CHECK, Check, PullRequest, Review
from sm.history import fold
from sm.phase import Phase, PhaseWrite
from sm.review import verdict
from sm.session import agent, phasefile, plan
from sm.session.agentstate import State
from sm.session.registry import IssueSession
from sm.store.files import open_guarded
from sm.workflow import signs
from sm.workflow.context import Context
from sm.workflow.replies import Reply, replies, unread
from sm.workflow.snapshot import Snapshot, is_open, snapshot

DRAWN_S = 2.0
"""A dialog's hook is called before it is on the screen, so long at most."""
EMPTY_WRITE = PhaseWrite(Phase.NONE, "", "", "", 0.0)


class Observation(Struct, frozen=True):
    """The facts, and what they were read from, for the texts that follow from them."""

    facts: Facts
    write: PhaseWrite
    pull: PullRequest | None
    review: Review | None
    replies: tuple[Reply, ...]
    problem: str
    """Why the phase file cannot be read, '' if it can."""
    unread: str = ""
    """Why an answer in the vault cannot be read, '' if it can."""
    question: str = ""
    """What a dialog in the agent's terminal shows."""

    @property
    def check(self) -> Check:
        """What CI says, without its log."""
        return self.pull.check if self.pull else NO_CHECK


def observe(ctx: Context, session: IssueSession, *, newer_than: float = 0.0) -> Observation:
    """What is known now. The forge is asked again if it was last seen before the phase write.

    Raises:
        TemporaryError: the forge or the remote cannot be reached.

    """
    phasefile.correct_time(ctx.root, session.project, session.issue, not_before=session.created_at)
    # Before the phase, so that the last word of an agent that has died, or ended its turn, counts.
    life, told = _life(ctx, session), _signs(ctx, session)
    shown = _screen(ctx, session) if told and _tells_no_hook(told) else None
    if told and shown:
        told = _corrected(told, shown)
    written = _read_phase(ctx, session)
    seen = snapshot(ctx, newer_than=max(newer_than, written.at))
    found = _gather(ctx, session, told, written, seen)
    facts = structs.replace(found.facts, session=life)
    if facts.awaits:
        facts = _compare_with_remote(ctx, session, seen, facts)
    return structs.replace(found, facts=facts, question=shown.question if shown else "")


def last_known(ctx: Context, session: IssueSession, seen: Snapshot) -> Observation:
    """The same from an older look at the forge, for showing: neither git nor tmux is asked.

    So `pushed` and `unpushed` of its facts say nothing, and a session is alive with its process.
    """
    return _gather(ctx, session, _signs(ctx, session), _read_phase(ctx, session), seen)


def _signs(ctx: Context, session: IssueSession) -> Signs | None:
    return signs.read(session.dir) if ctx.profile.hooks else None


class _Written(Struct, frozen=True):
    write: PhaseWrite = EMPTY_WRITE
    lost: bool = False
    problem: str = ""

    @property
    def at(self) -> float:
        if self.write.phase is Phase.NONE:
            return 0.0
        return min(self.write.at, time.time())  # a clock that was set back must not stop timers


def _read_phase(ctx: Context, session: IssueSession) -> _Written:
    try:
        write = phasefile.read(ctx.root, session.project, session.issue)
    except StateError as error:
        return _Written(problem=error.message)
    return _Written(lost=True) if write is None else _Written(write)


def _tells_no_hook(told: Signs) -> bool:
    """Whether a dialog may have been turned down, or be open before the first hook is called."""
    return told.dialog_at is not None or told.starting_at is not None


def _corrected(told: Signs, shown: Screen) -> Signs:
    """What the screen knows better: no hook tells that a dialog was answered, or turned down."""
    if told.dialog_at is not None and shown.prompt is Prompt.BUSY:
        drawn = time.time() > told.dialog_at + DRAWN_S
        return structs.replace(told, dialog_at=None, doing=str(State.BUSY)) if drawn else told
    if shown.prompt is Prompt.IDLE and told.dialog_at is not None:
        return structs.replace(told, dialog_at=None, doing=str(State.IDLE))
    if shown.prompt is Prompt.DIALOG and told.starting_at is not None:
        return structs.replace(told, dialog_at=told.starting_at, doing=str(State.DIALOG))
    return told


def _screen(ctx: Context, session: IssueSession) -> Screen | None:
    if (known := agent.load(session.dir)) is None:
        return None
    try:
        _, shown = ctx.tmux.look(known.pane_id, escapes=True)
    except (MissingPaneError, NoServerError):
        return None
    return screen.read(ctx.profile, shown)


def _gather(
    ctx: Context, session: IssueSession, told: Signs | None, written: _Written, seen: Snapshot
) -> Observation:
    write = written.write
    issue, pull = seen.issue(session.issue), seen.pull(session.branch)
    head = pull.head if pull else seen.head(session.branch)
    review = verdict(pull.reviews, head, ctx.project.trusted) if pull else None
    check = pull.check if pull else NO_CHECK
    directory = session.dir
    facts = Facts(
        now=time.time(),
        limits=ctx.limits,
        history=fold(plan.receipts(directory)),
        session=Life.ALIVE if agent.is_alive(directory) else Life.GONE,
        phase=write.phase,
        write=write.id if write.phase is not Phase.NONE else "",
        written_at=written.at,
        phase_lost=written.lost,
        signs=told,
        issue_open=is_open(seen, session.issue),
        blocked=issue is not None and ctx.project.labels.blocked in issue.labels,
        pull=pull.state if pull else None,
        head=head,
        conflicts=pull.conflicts if pull else False,
        check=check.state,
        check_at=check.at,
        review=review.state if review else None,
        review_id=review.id if review else "",
    )
    asked = facts.escalation
    answers = replies(ctx, session, issue, asked.at) if asked else ()
    facts = structs.replace(
        facts,
        idle_since=_idle_since(ctx, session, facts),
        reply=answers[-1].id if answers else "",
    )
    unreadable = unread(ctx, session) if asked else ""
    return Observation(facts, write, pull, review, answers, written.problem, unreadable)


def _life(ctx: Context, session: IssueSession) -> Life:
    return Life.ALIVE if agent.lives(ctx.tmux, session) else Life.GONE


def _compare_with_remote(
    ctx: Context, session: IssueSession, seen: Snapshot, facts: Facts
) -> Facts:
    """Whether the remote's branch has the work that the worktree has."""
    base, head = seen.head(session.base), seen.head(session.branch)
    pushed = bool(head) and not _is_merged(ctx, session, head, base)
    tip = _tip(ctx, session)
    unpushed = bool(tip) and tip != head and not ctx.git.is_ancestor(tip, head or base)
    return structs.replace(facts, pushed=pushed, unpushed=unpushed)


def _tip(ctx: Context, session: IssueSession) -> str:
    """The session's last commit: the branch's where somebody has deleted the worktree."""
    if (session.worktree / ".git").exists():
        return ctx.git.at(session.worktree).rev_parse("HEAD") or ""
    return ctx.git.rev_parse(f"refs/heads/{session.branch}") or ""


def _is_merged(ctx: Context, session: IssueSession, head: str, base: str) -> bool:
    merged = ctx.git.ancestry(head, base)
    if merged is None and ctx.git.rev_parse(base) is None:  # others' merges since the last fetch
        ctx.git.fetch_branch(session.remote, session.base)
        merged = ctx.git.ancestry(head, base)
    return merged or False


def _idle_since(ctx: Context, session: IssueSession, facts: Facts) -> float | None:
    """Since when the agent is at rest: its hooks tell, or else the time of the idle marker.

    A marker from before the last start or injection says nothing.
    """
    if facts.signs:
        return facts.signs.ended_at
    try:
        with open_guarded(ctx.root.idle_marker(session.name), os.O_RDONLY) as fd:
            marked_at = os.fstat(fd).st_mtime
    except (FileNotFoundError, StateError):  # what another user has put there says nothing
        return None
    return marked_at if marked_at > facts.addressed_at else None
