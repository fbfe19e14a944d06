"""Start, or take up again, the work on an issue: claim, worktree, phase file, agent, monitor.

Every step recognises what is there already, so a start that was killed is simply run again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from sm.adapters.forge.model import Issue, IssueState
from sm.config.schema import Project
from sm.errors import SmError, TemporaryError
from sm.issues import claim, phase_file, worktree
from sm.issues.claim import Claim
from sm.issues.compose import gather, launch_with, read_git_state
from sm.issues.material import SOURCES
from sm.issues.observe import recall
from sm.issues.problem import Problem, write_problem
from sm.issues.prompts import write_prompt
from sm.issues.replies import locate_question
from sm.issues.settled import let_go
from sm.issues.snapshot import snapshot
from sm.messages.queue import Place
from sm.sessions import agent, monitors, plan, registry
from sm.sessions.history import Receipt, Verb
from sm.sessions.launch import Launch
from sm.sessions.project import Context
from sm.sessions.registry import IssueSession
from sm.store import events, lock
from sm.store.failpoint import crash_point
from sm.store.files import discard, write_atomic
from sm.store.paths import name_session


class TakenError(TemporaryError):
    """Somebody else works on the issue."""


class SettledError(TemporaryError):
    """The issue was to be worked on when the forge was last seen, and is not any more."""


def is_started(ctx: Context, session: IssueSession) -> bool:
    """Whether the session once had its agent."""
    return any(r.verb in (Verb.START, Verb.RECOVER) for r in _receipts(ctx, session))


def _receipts(ctx: Context, session: IssueSession) -> list[Receipt]:
    return plan.read_receipts(session.dir)


def start(
    ctx: Context, issue: Issue, *, by_hand: bool = False, seize: bool = False
) -> IssueSession:
    """Bring the issue to the point where an agent works on it and a monitor watches it.

    `by_hand`: a person has said so, whatever its labels. `seize` takes the claim away from
    its holder.

    Raises:
        TakenError: another installation holds the claim.
        SettledError: it is closed, blocked, or not in the backlog any more.

    """
    session = put_on_record(ctx, issue)
    crash_point("start:recorded")
    with lock.hold(session.dir.lock, timeout_s=120):
        if not is_started(ctx, session):
            if not (by_hand or seize):
                _check_due(ctx, session)
            with _noted(session):
                _claim(ctx, session, seize=seize)
                _begin(ctx, session)
    monitors.ensure(session)
    return session


def put_on_record(ctx: Context, issue: Issue) -> IssueSession:
    """The record of the issue's session, made where it is missing or damaged."""
    return registry.create(ctx.root, _identity(ctx, issue))


def _check_due(ctx: Context, session: IssueSession) -> None:
    """See that there is work to do, asked anew: a session may have ended since the last look.

    Its claim is the last to go but for its files. So one that we hold is of a start cut short, or
    of a session whose state was lost; where its issue is settled, that session is ended here.

    Raises:
        SettledError: there is none; the session is forgotten.

    """
    name = claim.name_ref(session.issue)
    refs = ctx.git.ls_remote(ctx.project.remote, name)
    ours = claim.is_ours(ctx.git, ctx.project, session.issue, ctx.root, refs)
    issue = ctx.forge.issue(session.issue)
    workable = is_workable(ctx.project, issue)
    if workable and (ours or ctx.project.labels.backlog in issue.labels):
        return
    if ours and not workable:
        let_go(ctx, session, issue)
    for problem in registry.forget(ctx.root, session, ctx.config.logs):
        ctx.record(events.Problem(session=session.name, text=problem))
    raise SettledError(f"#{session.issue} was settled in the meantime")


def is_workable(project: Project, issue: Issue) -> bool:
    """Whether the issue is open, and not blocked."""
    return issue.state is IssueState.OPEN and project.labels.blocked not in issue.labels


@contextlib.contextmanager
def _noted(session: IssueSession) -> Iterator[None]:
    """Keep what is in the way of a start beside the session, for people to see."""
    try:
        yield
    except TakenError:
        raise
    except SmError as error:
        write_problem(session.dir, Problem(error.message))
        raise
    discard(session.dir.problem)


def _identity(ctx: Context, issue: Issue) -> IssueSession:
    project = ctx.project
    found = worktree.find(ctx.git, project, issue.number)
    return IssueSession(
        name=name_session(project.name, issue.number),
        project=project.name,
        issue=issue.number,
        title=issue.title,
        branch=project.branch(issue.number),
        base=project.primary_branch,
        remote=project.remote,
        repo=project.repo,
        cwd=found.path if found else project.worktree(issue.number),
        provider=ctx.profile.name,
        config=ctx.config.source,
        state_root=ctx.root.path,
        created_at=time.time(),
    )


def _claim(ctx: Context, session: IssueSession, *, seize: bool) -> None:
    take = claim.seize if seize else claim.claim
    outcome = take(ctx.git, ctx.project, session.issue, ctx.root)
    if outcome is Claim.TAKEN:
        registry.forget(ctx.root, session, ctx.config.logs)
        raise TakenError(f"#{session.issue} is worked on elsewhere")
    crash_point("start:claimed")
    labels = ctx.project.labels
    ctx.forge.add_label(session.issue, labels.in_progress)
    ctx.forge.remove_label(session.issue, labels.backlog)
    ctx.record(events.Claimed(session=session.name, how=str(outcome)))


def _begin(ctx: Context, session: IssueSession) -> None:
    """Make the worktree and launch the agent, or adopt one that still lives."""
    directory = session.dir
    made = worktree.ensure(ctx.git, ctx.project, session.issue)
    crash_point("start:worktree")
    if agent.adopt(ctx.tmux, session) is None:
        phase_file.create(ctx.root, session.project, session.issue)
        agent.launch(ctx.tmux, session, _launch(ctx, session), generation=1)
    crash_point("start:launched")
    _write_watch(ctx, session)
    receipt = Receipt(time.time(), "start", "start", verb=Verb.START, detail=made.note)
    plan.add_receipt(directory, receipt)
    ctx.record(events.Started(session=session.name, title=session.title))


def _write_watch(ctx: Context, session: IssueSession) -> None:
    """Name the files whose change concerns this session, and those that concern the project."""
    watched = [
        ctx.root.phase(session.project, session.issue),
        ctx.root.idle_marker(session.name),
        session.dir.state,
        session.dir.queue / Place.WAITING,
        locate_question(ctx, session),
    ]
    write_atomic(session.dir.watch, "".join(f"{path}\n" for path in watched if path))
    sign = next(iter(ctx.forge.signs()), "")  # without one it is looked at when that is due
    write_atomic(session.dir.shared, f"{ctx.directory.path}\n{sign}\n")


def _launch(ctx: Context, session: IssueSession) -> Launch:
    """With the first prompt; where the branch has work already, the one for going on with it."""
    work = read_git_state(ctx, session)
    name = "recovery" if work.log or work.status else "start"
    material = gather(ctx, session, recall(ctx, session, snapshot(ctx)), work, SOURCES[name])
    prompt = write_prompt(name, material)
    return launch_with(ctx, session, prompt)
