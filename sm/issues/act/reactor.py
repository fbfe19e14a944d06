"""Observe, decide, act: one pass over one session, under its lock, resumable at every step."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from functools import partial

from msgspec import Struct

from sm.adapters.forge.spender import spend_for
from sm.adapters.git_call import GitLockedError
from sm.base.act_guard import OvertakenError
from sm.base.errors import SmError, TemporaryError, UsageError
from sm.base.foreign import read_seconds
from sm.base.output import warn
from sm.base.refusal import Refusal
from sm.channels import people
from sm.context.monitor import tend_context
from sm.issues.act import attempts, brake, retry
from sm.issues.act.compose import launch_with
from sm.issues.act.effects import (
    NotNowError,
)
from sm.issues.act.forge_answers import answer_requests
from sm.issues.act.holdups import tell_of_holdups
from sm.issues.act.planner import choose, choose_within_limits
from sm.issues.act.steps import carry_out
from sm.issues.look import discussion, issue_text, reviews
from sm.issues.look.snapshot import snapshot
from sm.issues.work import leftovers, slots
from sm.messages import alerts
from sm.messages.follow_up import see_to, tend_messages
from sm.sessions import agent_process, registry
from sm.sessions.followers import have_followed
from sm.sessions.history import StepVerb
from sm.sessions.plan import Plan
from sm.sessions.project import Project, load_last_project
from sm.sessions.session import IssueSession
from sm.store import lock
from sm.store.files import backdate, read_guarded, write_atomic
from sm.store.paths import SessionDir
from sm.store.repair import repair

ROUNDS = 20
"""Decisions in one pass. The matrix comes to rest after two or three; more would be a loop."""

FORGE_VERBS = frozenset(
    {StepVerb.OPEN_PULL, StepVerb.RERUN_CI, StepVerb.MERGE, StepVerb.CLOSE_ISSUE}
)
"""Verbs after which the forge looks different, so its last observation is worth nothing."""

BY_PERSON = (Refusal.DRAFT, Refusal.TYPING, Refusal.MODE, Refusal.DIALOG)
"""Refusals by a person. The session waits for them, and leaves its slot to others."""


class Moment(Struct, frozen=True):
    """Beginning of a pass (seconds since 1970), and the phase file's time then."""

    at: float
    phase_mtime_ns: int | None

    @classmethod
    def now(cls, session: IssueSession) -> Moment:
        """Return this moment. Anything in place of the phase file counts: monitors see its time."""
        try:
            found = session.root.phase(session.record.project, session.issue).stat()
        except OSError:
            return cls(time.time(), None)
        return cls(time.time(), found.st_mtime_ns)


Choose = Callable[[IssueSession, float], Plan | float]
"""Function that returns the next plan, by a look after that moment, or when to look again."""


def run_pass(session: IssueSession) -> None:
    """Bring the session up to date; while its configuration is unusable, keep its limits alone.

    Raises:
        UsageError: it is unusable, and what it said before is not known.

    """
    try:
        project = session.project
    except UsageError as error:
        last = load_last_project(session.record)
        if last is None:
            raise
        warn(error.message)
        keep_limits(last, session.name)
    else:
        react(project, session.name)


def react(project: Project, name: str) -> None:
    """Bring the session `name` up to date; a session that is over is no error."""
    directory = project.root.session(name)
    repair(project.root, project.root.project(project.name), directory)
    with registry.tolerate_end(directory):
        with contextlib.suppress(TemporaryError):
            snapshot(project)  # the monitor may call because the forge is due, not the session
        if directory.identity.exists():
            _react(project, name, directory)


def keep_limits(project: Project, name: str) -> None:
    """Keep the session `name` from spending more than it may; one that is over is no error.

    Its configuration cannot be used now, and `project` is as it was when it could be. A person is
    just changing it, so nothing else is decided by that. What was decided before is carried out.
    """
    directory = project.root.session(name)
    with registry.tolerate_end(directory):
        with lock.hold(directory.lock, timeout_s=120):
            if not directory.identity.exists():
                return
            session = registry.load_issue_session(project.root, name).provide(project=project)
            again_at = min(brake.tend(session), time.time() + brake.UNUSABLE_S)
            for _ in _passes(session, directory, choose_within_limits):
                pass
            _call_sooner(directory, again_at)
        have_followed(session, partial(brake.wake_if_changed, session))


def _react(project: Project, name: str, directory: SessionDir) -> None:
    with lock.hold(directory.lock, timeout_s=120):
        if not directory.identity.exists():
            return
        session = registry.load_issue_session(project.root, name).provide(project=project)
        with spend_for(name), attempts.fence_in(session) as fence:
            again_at = math.inf
            if not attempts.is_overtaken(session):
                again_at = min(brake.tend(session), _tend(session))
            attempts.note(session, fence)
            for _ in _passes(session, directory, choose):
                attempts.note(session, fence)
            if fence and directory.identity.exists():
                again_at = min(again_at, see_to(session, lambda: attempts.save_work(session)))
        _call_sooner(directory, again_at)
    have_followed(session, partial(brake.wake_if_changed, session))


def _tend(session: IssueSession) -> float:
    """Do all that the matrix does not decide on; none of it keeps a reaction waiting."""

    def relaunch(generation: int) -> None:
        start = launch_with(session, "")
        agent_process.relaunch(session.tmux, session, start, generation=generation)

    def context() -> float:
        return tend_context(session, relaunch)

    seen_to = (
        context,
        *(channel.listen for channel in people.open_channels(session)),
        lambda: issue_text.watch(session),
        lambda: reviews.watch(session),
        lambda: discussion.watch(session),
        lambda: answer_requests(session),
        lambda: tend_messages(session),
        lambda: alerts.tend_account(session, session.project.settings.escalation.remind_s),
        lambda: tell_of_holdups(session),
    )
    return min(see_to(session, tend) for tend in seen_to)


def _passes(session: IssueSession, directory: SessionDir, choose: Choose) -> Iterator[None]:
    newer_than = 0.0
    for _ in range(ROUNDS):
        started = Moment.now(session)
        if again_at := retry.find_earliest(session):
            _rest(directory, started, again_at)
            return
        try:
            plan = choose(session, newer_than)
            if not isinstance(plan, Plan):
                _rest(directory, started, plan)
                return
            if not carry_out(session, plan):
                return
            if any(step.verb in FORGE_VERBS for step in plan.steps):
                newer_than = time.time()
        except OvertakenError as error:
            attempts.give_up(session, error.message)
        except SmError as error:
            if not _remove_locks(session, error):
                if isinstance(error, NotNowError) and error.problem.refusal in BY_PERSON:
                    slots.free(session)
                _rest(directory, started, retry.note_obstacle(session, error))
                return
        yield
    raise SmError(f"'{session.name}' did not come to rest in {ROUNDS} decisions: see sm trace")


def _remove_locks(session: IssueSession, error: SmError) -> bool:
    """Remove locks that no git holds, if one was in the way; say whether there was one."""
    return isinstance(error, GitLockedError) and bool(
        leftovers.clear_locks(session.project, session.name)
    )


def _call_sooner(directory: SessionDir, at: float) -> None:
    """Let the monitor call at `at`, unless it calls earlier, or the session is over."""
    line = (read_guarded(directory.next, 40) or b"").decode("ascii", "replace").strip()
    if at < math.inf and (read_seconds(line) or 0.0) > at:
        write_atomic(directory.next, f"{math.ceil(at)}\n")


def _rest(directory: SessionDir, started: Moment, wake_at: float) -> None:
    """Tell the monitor up to which moment everything is seen, and when to call at the latest."""
    write_atomic(directory.next, f"{math.ceil(wake_at)}\n")
    # What changed while we looked must count as changed since.
    write_atomic(directory.seen, "", mtime_ns=backdate(started.at))
    if started.phase_mtime_ns is not None:
        write_atomic(directory.phase_seen, "", mtime_ns=started.phase_mtime_ns)
