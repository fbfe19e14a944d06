"""Start of work on an issue, also again: claim, worktree, phase file, agent, monitor.

Every step recognises what is there already, so a start that was killed is simply run again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import structs

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.model import Issue, IssueState, PullState
from sm.adapters.forge.protocol import list_signs
from sm.adapters.git_call import NoSuchBranchError
from sm.base.errors import SmError, TemporaryError, UsageError
from sm.base.issue_id import IssueId, spell
from sm.channels import people
from sm.config.load import list_watched
from sm.config.schema import ProjectSettings
from sm.context.rotation_files import read_last_document
from sm.issues.act import attempts
from sm.issues.act.compose import gather, launch_with, read_git_state
from sm.issues.act.effects import EFFECTS, check_hands, forget
from sm.issues.act.problem import REFUSALS, SessionProblem, note_problem, write_problem
from sm.issues.look import issue_text, phase_file
from sm.issues.look.backlog import is_workable
from sm.issues.look.observe import recall
from sm.issues.look.snapshot import last_brought, last_snapshot, snapshot
from sm.issues.rules.endings import CLOSE, FINISH, LET_GO, SETTLE
from sm.issues.rules.material import SOURCES
from sm.issues.rules.prompts import write_prompt
from sm.issues.rules.rows import Step
from sm.issues.work import claim, slots, worktree
from sm.issues.work.claim import Claim
from sm.issues.work.furnish import make_ready
from sm.messages import alerts
from sm.messages.queue import MessageFolder
from sm.sessions import agent_process, monitors, pause, plan, registry
from sm.sessions.history import Receipt, StepVerb
from sm.sessions.launch import Launch
from sm.sessions.plan import PlannedStep
from sm.sessions.project import Project
from sm.sessions.record import IssueRecord
from sm.sessions.session import IssueSession
from sm.store import events, journal, lock
from sm.store.failpoint import crash_point
from sm.store.files import discard, write_atomic
from sm.store.paths import name_session

UNTOLD = frozenset({StepVerb.COMMENT, StepVerb.FORGET})
"""Verbs that `let_go` leaves out: people see the end on the issue, and the session is forgotten."""


class HeldClaim(NamedTuple):
    """Attempt's number, and the commit of the claim that another installation holds for it."""

    attempt: int
    claim: str


NOT_HELD = HeldClaim(0, "")
"""Value for a session that is begun for this installation itself."""


class TakenError(TemporaryError):
    """Another session works on the issue."""


class SettledError(TemporaryError):
    """The issue was to be worked on when the forge was last seen, and no longer is."""


class PausedError(TemporaryError):
    """A person has paused the session, its project or everything."""


def is_started(session: IssueSession) -> bool:
    """Whether the session once had its agent."""
    return any(
        r.verb in (StepVerb.START, StepVerb.RECOVER) for r in plan.read_receipts(session.dir)
    )


def begin_placed(project: Project, number: IssueId, attempt: int, claim: str) -> IssueSession:
    """Bring an issue that another installation has placed here to the point that `start` does.

    That installation holds its claim, by the commit `claim`. Can be called again at any time: a
    session of this attempt exists once. An agent of an earlier attempt is ended first.

    Raises:
        TakenError: the claim is another one by now.
        UsageError: `attempt` is no number of an attempt.
        SettledError, UntrustedTextError, PausedError: as `start`.

    """
    if attempt < 1 or not claim:
        raise UsageError("an attempt has a number from 1 on, and a claim")
    return start(project, project.forge.issues.read(number), held=HeldClaim(attempt, claim))


def start(
    project: Project,
    issue: Issue,
    *,
    by_hand: bool = False,
    seize: bool = False,
    held: HeldClaim = NOT_HELD,
) -> IssueSession:
    """Bring the issue to the point where an agent works on it and a monitor watches it.

    `by_hand`: a person has said so, whatever its labels. `seize` takes the claim away from its
    holder. `held`: another installation holds the claim for this one.

    Raises:
        TakenError: another installation holds the claim.
        SettledError: it is closed, blocked, or no longer in the backlog.
        UntrustedTextError: no trusted person vouches for its text.
        PausedError: it is paused, and no person has said so.

    """
    by_person = by_hand or seize
    if not by_person:
        _check_not_paused(project, name_session(project.name, issue.number))
    if held.attempt:
        _clear_earlier(project, issue, held)
    session = put_on_record(project, issue, held)
    crash_point("start:recorded")
    with lock.hold(session.dir.lock, timeout_s=120):
        if not is_started(session):
            if not by_person:  # since the look before there was a record
                _check_not_paused(project, session.name)
            slots.occupy(session)
            seen = None if by_person else _look_at_claim(session)
            ours = seen is not None and _find_claim_or_end(session, seen)
            _take_text(session, by_hand=by_person, ours=ours)
            with _noted(session):
                _claim(session, seen, ours=ours, seize=seize)
                _begin(session, seen or {}, seized=seize)
    monitors.ensure(session)
    return session


def _clear_earlier(project: Project, issue: Issue, held: HeldClaim) -> None:
    """End the session of an earlier attempt that is still here; its work is kept, and told of.

    Raises:
        TakenError: a later attempt is here.

    """
    found = registry.find(project.root, name_session(project.name, issue.number))
    if not isinstance(found, IssueSession) or found.record.claim == held.claim:
        return
    if found.attempt >= held.attempt:
        raise TakenError(f"attempt {found.attempt} at {spell(found.issue)} is here already")
    earlier = found.provide(project=project)
    with lock.hold(earlier.dir.lock, timeout_s=120):
        end_attempt(earlier, f"attempt {held.attempt} begins here")


def end_attempt(session: IssueSession, why: str) -> str:
    """End the session of an attempt that goes on elsewhere; return what is kept of its work.

    The caller holds the session's lock, so that no pass begins its agent again.
    """
    from sm.issues.work import takeover  # for few starts

    if not session.dir.identity.exists():  # a pass of its own was faster
        return ""
    attempts.give_up(session, why)
    agent_process.stop(session.tmux, session)
    kept = takeover.keep_work(session)
    people.withdraw(session)
    forget(session)
    return kept


def _check_not_paused(project: Project, name: str) -> None:
    if found := pause.find(project.root, project.name, name):
        raise PausedError(found.sentence)


def put_on_record(project: Project, issue: Issue, held: HeldClaim = NOT_HELD) -> IssueSession:
    """Return the record of the issue's session; make it if it is missing or damaged."""
    session = registry.create(project.root, identify(project, issue, held))
    return session.provide(project=project)


def _take_text(session: IssueSession, *, by_hand: bool, ours: bool) -> None:
    """Take the issue's text; if no one vouches for it, a start that has done nothing yet ends."""
    try:
        # One that was placed here begins with a claim that was taken for it.
        issue_text.take(session, by_hand=by_hand, anew=ours and not session.attempt)
    except issue_text.UntrustedTextError as error:
        if ours:
            write_problem(session.dir, SessionProblem(error.message))
        else:
            forget(session)
        raise
    crash_point("start:text")


def _find_claim_or_end(session: IssueSession, seen: dict[str, str]) -> bool:
    """Say whether we hold the claim, if there still is work to do; else end the session.

    The remote is asked again, because a session may have ended since the last look. Its claim is
    the last to go except for its files. So a claim that we hold belongs to an interrupted start, or
    to a session whose state was lost.

    Raises:
        SettledError: there is no work, and the session is forgotten.

    """
    project = session.project
    ours = claim.is_of(session, seen)
    issue = _find_issue(session)
    if is_due(project.settings, issue, ours=ours):
        return ours
    if ours and not is_workable(project.settings, issue):
        with _noted(session):
            let_go(session, issue)
    forget(session)
    raise SettledError(f"{spell(session.issue)} was settled in the meantime")


def settle(project: Project, issue: Issue) -> bool:
    """End what is left of an issue without a session, and give up the claim if it is ours.

    False: the issue is to be worked on; it has a record now, and the next tick starts its session.

    Raises:
        NotNowError: a person is at its terminal.

    """
    session = put_on_record(project, issue)
    with lock.hold(session.dir.lock, timeout_s=120):
        try:
            _find_claim_or_end(session, _look_at_claim(session))
        except SettledError:
            return True
    return False


def is_due(project: ProjectSettings, issue: Issue, *, ours: bool) -> bool:
    """Whether the issue is to be worked on by us: `ours` says that we hold its claim."""
    return is_workable(project, issue) and (ours or project.labels.backlog in issue.labels)


def _look_at_claim(session: IssueSession) -> dict[str, str]:
    """Read the issue's refs on the remote now: its claim, its branch, and the branch's base."""
    return claim.look(session.project.git, session.own_settings, session.issue)


def _find_issue(session: IssueSession) -> Issue:
    """Read the issue as it is now; one that was deleted counts as closed."""
    try:
        return session.project.forge.issues.read(session.issue)
    except NotFoundError:
        return structs.replace(issue_text.make_issue(session, None), state=IssueState.CLOSED)


def let_go(session: IssueSession, issue: Issue) -> None:
    """End a session: first its agent, then its traces on the forge, and its claim last.

    Work that is not merged stays on its branch or in its worktree.

    Raises:
        NotNowError: a person is at its terminal; nothing was done.

    """
    check_hands(session)
    project = session.project
    pull = project.forge.pulls.find_newest(session.record.branch)
    merged_head = pull.head if pull and pull.state is PullState.MERGED else ""
    steps: tuple[Step, ...] = (*SETTLE, *FINISH) if merged_head else CLOSE
    if issue.state is IssueState.OPEN:  # blocked
        steps = (Step(StepVerb.KILL), *LET_GO)
    for step in steps:
        if step.verb not in UNTOLD:
            _do(session, PlannedStep(step.verb, step.text, merged_head))
    project.record(events.LetGo(session=session.name))


def _do(session: IssueSession, step: PlannedStep) -> None:
    try:
        EFFECTS[step.verb](session, step, "")
    except REFUSALS as error:  # nor does it hold up the end of a session on record
        if step.verb is StepVerb.RELEASE_CLAIM:
            raise
        told = events.Problem(session=session.name, text=f"{step.verb}: {error.message}")
        journal.record_once(session.root.journal, told)


@contextlib.contextmanager
def _noted(session: IssueSession) -> Iterator[None]:
    """Keep what prevents a start beside the session, for people to see."""
    try:
        with alerts.telling_of_sandbox(session):
            yield
    except TakenError:
        raise
    except SmError as error:
        lasts = not isinstance(error, TemporaryError)
        note_problem(session.dir, SessionProblem(error.message, lasts=lasts))
        raise
    discard(session.dir.problem)


def identify(project: Project, issue: Issue, held: HeldClaim = NOT_HELD) -> IssueSession:
    """Return the session that the issue would have; nothing is written."""
    settings = project.settings
    found = worktree.find(project.git, settings, issue.number)
    return IssueSession(
        IssueRecord(
            name=name_session(settings.name, issue.number),
            project=settings.name,
            issue=issue.number,
            title=issue.title,
            branch=settings.branch(issue.number),
            base=settings.primary_branch,
            remote=settings.remote,
            repo=settings.repo,
            cwd=found.path if found else settings.worktree(issue.number),
            provider=project.profile.name,
            config=project.config.source,
            state_root=project.root.path,
            created_at=time.time(),
            attempt=held.attempt,
            claim=held.claim,
        )
    )


def _claim(session: IssueSession, seen: dict[str, str] | None, *, ours: bool, seize: bool) -> None:
    """Take the claim. With an attempt, it was taken for the session, and never by it."""
    project, settings = session.project, session.own_settings
    if session.record.attempt:
        outcome = Claim.PLACED if ours else Claim.TAKEN
    elif seize:
        from sm.issues.work import takeover  # for few starts

        outcome = takeover.seize(Project(project.config, settings), session.issue)
    else:
        outcome = claim.claim(project.git, settings, session.issue, project.root, first=seen)
    if outcome is Claim.TAKEN:
        forget(session)
        raise TakenError(f"{spell(session.issue)} is worked on elsewhere")
    crash_point("start:claimed")
    labels = project.settings.labels
    project.forge.issues.add_label(session.issue, labels.in_progress)
    project.forge.issues.remove_label(session.issue, labels.backlog)
    project.record(events.Claimed(session=session.name, how=str(outcome)))


def _begin(session: IssueSession, seen: dict[str, str], *, seized: bool) -> None:
    """Make the worktree and launch the agent, or adopt one that still lives.

    `seen` is what the remote had just before the claim, as far as somebody has looked. `seized`:
    others may have worked on the issue elsewhere until now.
    """
    project = session.project
    directory = session.dir
    note = make_ready(session, at=claim.find_head(session.own_settings, session.issue, seen))
    moved = ""
    if session.attempt or seized:
        from sm.issues.work import wip  # for few starts

        moved = wip.take_up(session)
    crash_point("start:worktree")
    if agent_process.adopt(session.tmux, session) is None:
        # The claimant, maybe another machine, made the issue's branch from the base that the remote
        # has. Compared with an older one, the commits of others would count as work on the issue.
        record, at = session.record, claim.find_base(session.own_settings, seen)
        with contextlib.suppress(NoSuchBranchError):  # there is nothing to compare with
            project.git.fetch_branch(record.remote, record.base, at=at)
        phase_file.create(project.root, session.record.project, session.issue)
        agent_process.launch(session.tmux, session, _launch(session, moved), generation=1)
    crash_point("start:launched")
    _write_watch(session)
    receipt = Receipt(time.time(), "start", "start", verb=StepVerb.START, detail=note)
    plan.add_receipt(directory, receipt)
    project.record(events.Started(session=session.name, title=session.record.title))


def _write_watch(session: IssueSession) -> None:
    """Name the files whose change concerns this session, and those that concern the project."""
    project = session.project
    watched = [
        project.root.phase(session.record.project, session.issue),
        project.root.idle_marker(session.name),
        session.dir.state,
        session.dir.queue / MessageFolder.WAITING,
        *people.list_watched(session),
        *list_watched(project.config.source),
    ]
    write_atomic(session.dir.watch, "".join(f"{path}\n" for path in watched))
    sign = next(iter(list_signs(project.forge)), "")  # without one it is looked at when that is due
    write_atomic(session.dir.shared, f"{project.directory.path}\n{sign}\n")


def _launch(session: IssueSession, moved: str) -> Launch:
    """Return the launch: with the first prompt, or, after an earlier session, the one for going on.

    `moved` is what there is to say of an attempt elsewhere that came before. A first attempt has
    none before it, whatever its branch has already.
    """
    work = read_git_state(session)
    went_on = session.attempt != 1 and bool(work.log or work.status)
    name = "recovery" if moved or went_on else "start"
    # The first prompt quotes nothing that may have changed since the last look. A look that was
    # brought for this session is the one: the next comes only when this start is over.
    directory = session.project.directory
    look = last_snapshot(directory) if name == "start" else last_brought(directory, session)
    seen = recall(session, look or snapshot(session.project))
    document = (moved and read_last_document(session.dir)) or ""
    known = gather(session, seen, work, SOURCES[name])
    material = structs.replace(known, earlier=True, moved=moved, document=str(document))
    return launch_with(session, write_prompt(name, material))
