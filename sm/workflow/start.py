"""Start, or take up again, the work on an issue: claim, worktree, phase file, agent, monitor.

Every step recognises what is there already, so a start that was killed is simply run again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from sm.config.schema import Project
from sm.errors import SmError, TemporaryError
from sm.forge import Issue, IssueState
from sm.history import Receipt, Verb
from sm.prompts import to_agent
from sm.session import agent, claim, phasefile, plan, registry, worktree
from sm.session.claim import Claim
from sm.session.launchfiles import Launch
from sm.session.queue import Place
from sm.session.registry import IssueSession
from sm.store import lock
from sm.store.crash import crash_point
from sm.store.files import discard, write_atomic
from sm.store.paths import session_name
from sm.workflow import monitors
from sm.workflow.compose import gather, git_state, launch_with
from sm.workflow.context import Context
from sm.workflow.observe import last_known
from sm.workflow.replies import question_file
from sm.workflow.settled import let_go
from sm.workflow.snapshot import snapshot


class TakenError(TemporaryError):
    """Somebody else works on the issue."""


class SettledError(TemporaryError):
    """The issue was to be worked on when the forge was last seen, and is not any more."""


def is_started(ctx: Context, session: IssueSession) -> bool:
    """Whether the session once had its agent."""
    return any(r.verb in (Verb.START, Verb.RECOVER) for r in _receipts(ctx, session))


def _receipts(ctx: Context, session: IssueSession) -> list[Receipt]:
    return plan.receipts(session.dir)


def start(
    ctx: Context, issue: Issue, *, by_hand: bool = False, seize: bool = False
) -> IssueSession:
    """Bring the issue to the point where an agent works on it and a monitor watches it.

    `by_hand`: a person has said so, whatever its labels. `seize` takes the claim away from
    whoever holds it.

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
    name = claim.ref(session.issue)
    refs = ctx.git.ls_remote(ctx.project.remote, name)
    ours = claim.is_ours(ctx.git, ctx.project, session.issue, ctx.root, refs)
    issue = ctx.forge.issue(session.issue)
    workable = is_workable(ctx.project, issue)
    if workable and (ours or ctx.project.labels.backlog in issue.labels):
        return
    if ours and not workable:
        let_go(ctx, session, issue)
    for problem in registry.forget(ctx.root, session):
        ctx.record("problem", session.name, problem)
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
        write_atomic(session.dir.problem, f"{error.message}\n")
        raise
    discard(session.dir.problem)


def _identity(ctx: Context, issue: Issue) -> IssueSession:
    project = ctx.project
    found = worktree.find(ctx.git, project, issue.number)
    return IssueSession(
        name=session_name(project.name, issue.number),
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
        registry.forget(ctx.root, session)
        raise TakenError(f"#{session.issue} is worked on elsewhere")
    crash_point("start:claimed")
    labels = ctx.project.labels
    ctx.forge.add_label(session.issue, labels.in_progress)
    ctx.forge.remove_label(session.issue, labels.backlog)
    ctx.record("claimed", session.name, str(outcome))


def _begin(ctx: Context, session: IssueSession) -> None:
    """Make the worktree and launch the agent, or adopt one that still lives."""
    directory = session.dir
    made = worktree.ensure(ctx.git, ctx.project, session.issue)
    crash_point("start:worktree")
    if agent.adopt(ctx.tmux, session) is None:
        phasefile.create(ctx.root, session.project, session.issue)
        agent.launch(ctx.tmux, session, _launch(ctx, session), generation=1)
    crash_point("start:launched")
    _write_watch(ctx, session)
    receipt = Receipt(time.time(), "start", "start", verb=Verb.START, detail=made.note)
    plan.add_receipt(directory, receipt)
    ctx.record("started", session.name, session.title)


def _write_watch(ctx: Context, session: IssueSession) -> None:
    """Name the files whose change concerns this session, and those that concern the project."""
    watched = [
        ctx.root.phase(session.project, session.issue),
        ctx.root.idle_marker(session.name),
        session.dir.state,
        session.dir.queue / Place.WAITING,
        question_file(ctx, session),
    ]
    write_atomic(session.dir.watch, "".join(f"{path}\n" for path in watched if path))
    shared = (ctx.directory.path, ctx.forge.stamp_file)
    write_atomic(session.dir.shared, "".join(f"{path}\n" for path in shared))


def _launch(ctx: Context, session: IssueSession) -> Launch:
    """With the first prompt; where the branch has work already, the one for going on with it."""
    work = git_state(ctx, session)
    material = gather(ctx, session, last_known(ctx, session, snapshot(ctx)), work)
    prompt = to_agent("recovery" if work.log or work.status else "start", material)
    return launch_with(ctx, session, prompt)
