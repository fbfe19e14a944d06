"""Observe, decide, act: one pass over one session, under its lock, resumable at every step."""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

from sm.adapters.forge.errors import MergeRefusedError
from sm.errors import SmError, StateError, TemporaryError
from sm.history import Receipt, Verb
from sm.reactions import OVERTAKING, decide
from sm.session import plan as plans
from sm.session import registry
from sm.session.delivery import Reason
from sm.session.plan import Plan
from sm.session.registry import IssueSession
from sm.store import lock
from sm.store.crash import crash_point
from sm.store.files import just_before, read_guarded, write_atomic
from sm.store.paths import SessionDir
from sm.workflow.compose import compose
from sm.workflow.context import Context
from sm.workflow.effects import NotNowError, PointlessError, perform, withdraw
from sm.workflow.observe import Observation, observe
from sm.workflow.messages import tell_of_step, tend_messages
from sm.workflow.snapshot import snapshot

ROUNDS = 20
"""Decisions in one pass. The matrix comes to rest after two or three; more would be a loop."""

FORGE_VERBS = frozenset({Verb.OPEN_PULL, Verb.MERGE, Verb.CLOSE_ISSUE})
"""After these the forge looks different, so the last observation of it is worth nothing."""

RETRY_S = (0.5, 300.0)
TYPING_RETRY_S = (0.5, 5.0)
"""Shortest and longest pause before another try; it grows with the time that it has been so.

Where hooks tell when a busy agent is free again, nothing has to be tried often.
"""

STUCK_S = 600.0
MESSAGE_RETRY_S = 15.0

"""So long a message may wait to be typed before a person is told; a busy agent takes its time."""


@dataclass(frozen=True)
class Moment:
    """When a pass began (seconds since the epoch), and what time the phase file had then."""

    at: float
    phase_mtime_ns: int | None

    @classmethod
    def now(cls, ctx: Context, session: IssueSession) -> Moment:
        """As it is now. Whatever is in place of the phase file: a monitor sees its time, too."""
        try:
            found = ctx.root.phase(session.project, session.issue).stat()
        except OSError:
            return cls(time.time(), None)
        return cls(time.time(), found.st_mtime_ns)


def react(ctx: Context, name: str) -> None:
    """Bring the session `name` up to date; a session that is over is no error."""
    directory = ctx.root.session(name)
    try:
        with contextlib.suppress(TemporaryError):
            snapshot(ctx)  # the monitor may call because the forge is due, not the session
        if directory.identity.exists():
            _react(ctx, name, directory)
    except (StateError, FileNotFoundError):
        if directory.identity.exists():
            raise
        # The state was removed under our hands: the next dev-poll begins anew.


def _react(ctx: Context, name: str, directory: SessionDir) -> None:
    with lock.hold(directory.lock, timeout_s=120):
        if not directory.identity.exists():
            return
        session = registry.of_issue(ctx.root, name)
        for _ in _passes(ctx, session, directory):
        again_at = _tend(ctx, session)
            pass

        _sooner(directory, again_at)


def _tend(ctx: Context, session: IssueSession) -> float:
    """What other sessions have to say, and are to hear; it keeps no reaction waiting."""
    try:
        return tend_messages(ctx.target(session))
    except SmError:
        return time.time() + MESSAGE_RETRY_S

def _passes(ctx: Context, session: IssueSession, directory: SessionDir) -> Iterator[None]:
    newer_than = 0.0
    for _ in range(ROUNDS):
        started = Moment.now(ctx, session)
        try:
            plan = _pending(ctx, session) or _decide(ctx, session, newer_than, started)
            if plan is None or not _carry_out(ctx, session, plan):
                return
        except SmError as error:
            _retry_later(ctx, session, error, started)
            return
        if any(step.verb in FORGE_VERBS for step in plan.steps):
            newer_than = time.time()
        yield
    raise SmError(f"'{session.name}' did not come to rest in {ROUNDS} decisions: see sm trace")


def _pending(ctx: Context, session: IssueSession) -> Plan | None:
    """The plan under way, unless waiting for its message to be typed has lost its sense."""
    plan = plans.pending(session.dir)
    if plan is None or not session.dir.problem.exists():
        return plan
    step = plans.next_step(plan, plans.receipts(session.dir))
    if step >= len(plan.steps) or plan.steps[step].verb is not Verb.INJECT:
        return plan
    facts = observe(ctx, session).facts
    problem = (read_guarded(session.dir.problem) or b"").decode("utf-8", "replace").strip()
    late = time.time() - plan.created_at > STUCK_S and Reason.BUSY not in problem
    stuck = f"stuck:{plan.key}"
    if late and stuck not in facts.history.troubles:
        plans.add_receipt(session.dir, Receipt(time.time(), stuck, "stuck", trouble=problem))
    elif not decide(facts, OVERTAKING).acts:
        return plan
    ctx.record("dropped", session.name, f"{plan.row}: waited in vain to be delivered")
    withdraw(session, plan, step)
    plans.drop(session.dir)
    return None


def _decide(ctx: Context, session: IssueSession, newer_than: float, started: Moment) -> Plan | None:
    """The plan for what is due now, saved; None when the session is at rest until `next`."""
    directory = session.dir
    seen = _observe(ctx, session, newer_than)
    decision = decide(seen.facts)
    directory.problem.unlink(missing_ok=True)
    if not decision.acts:
        _rest(directory, started, decision.wake_at)
        return None
    plan = compose(ctx, session, seen, decision)
    crash_point("plan:before-save")
    plans.save(directory, plan)
    crash_point("plan:after-save")
    ctx.record("decided", session.name, f"{plan.row} ({seen.write.text or 'no phase'})")
    return plan


def _observe(ctx: Context, session: IssueSession, newer_than: float) -> Observation:
    seen = observe(ctx, session, newer_than=newer_than)
    if not seen.problem:
        return seen
    # An unreadable phase file cuts the agent off: a person has to know, once each time.
    told = f"{seen.facts.life_at:.0f}:{seen.problem}"
    cause = f"phase-file:{hashlib.sha256(told.encode()).hexdigest()[:8]}"
    if cause in seen.facts.history.troubles:
        return seen
    plans.add_receipt(session.dir, Receipt(time.time(), cause, "phase-file", trouble=seen.problem))
    ctx.record("problem", session.name, seen.problem)
    return observe(ctx, session, newer_than=newer_than)


def _carry_out(ctx: Context, session: IssueSession, plan: Plan) -> bool:
    """Do the steps that are left; False when the session is over.

    Raises:
        SmError: a step is not possible now; the plan stays for another pass.

    """
    directory = session.dir
    first = plans.next_step(plan, plans.receipts(directory))
    for number in range(first, len(plan.steps)):
        verb = plan.steps[number].verb
        crash_point(f"{verb}:before")
        try:
            receipt = _do(ctx, session, plan, number)
        except PointlessError as error:
            ctx.record("dropped", session.name, f"{plan.row}: {error.message}")
            plans.drop(directory)
            return True
        crash_point(f"{verb}:after")
        ctx.record(str(verb), session.name, receipt.detail or receipt.trouble)
        if verb is Verb.FORGET:
            return False
        plans.add_receipt(directory, receipt)
        crash_point(f"{verb}:receipt")
    plans.add_receipt(directory, plan.receipt(len(plan.steps)))
    crash_point("plan:before-drop")
    plans.drop(directory)
    return True


def _do(ctx: Context, session: IssueSession, plan: Plan, number: int) -> Receipt:
    """The receipt of a step: done, or refused in a way that no repetition will mend."""
    verb = plan.steps[number].verb
    try:
        return plan.receipt(number, detail=perform(ctx, session, plan, number))
    except MergeRefusedError as error:
        return plan.receipt(number, trouble=error.message)
    except (NotNowError, PointlessError):
        raise
    except SmError as error:
        if verb is not Verb.RECOVER:
            raise
        # A restart that fails is a crash like any other: counted, paused for, given up at last.
        tell_of_step(session, plan, number)
        return plan.receipt(number, detail=f"{plans.FAILED}{error.message}")


def _retry_later(ctx: Context, session: IssueSession, error: SmError, started: Moment) -> None:
    """Note what is in the way, and look again: the longer it has been, the later."""
    file, problem = session.dir.problem, f"{error.message}\n"
    if (read_guarded(file) or b"").decode("utf-8", "replace") != problem:
        ctx.record("waiting", session.name, error.message)
        write_atomic(file, problem)
    typing = isinstance(error, NotNowError) and not (ctx.profile.hooks and Reason.BUSY in problem)
    shortest, longest = TYPING_RETRY_S if typing else RETRY_S
    age = time.time() - file.stat().st_mtime
    _rest(session.dir, started, time.time() + min(max(age / 4, shortest), longest))


def _rest(directory: SessionDir, started: Moment, wake_at: float) -> None:
    """Tell the monitor up to which moment all is seen, and when to call at the latest."""
    write_atomic(directory.next, f"{math.ceil(wake_at)}\n")
    # What changed while we looked must count as changed since.
    write_atomic(directory.seen, "", mtime_ns=just_before(started.at))
    if started.phase_mtime_ns is not None:
        write_atomic(directory.phase_seen, "", mtime_ns=started.phase_mtime_ns)
def _sooner(directory: SessionDir, at: float) -> None:
    """Have the monitor call at `at`, unless it calls earlier, or the session is over."""
    line = (read_guarded(directory.next) or b"").strip()
    if at < math.inf and line.isdigit() and int(line) > at:
        write_atomic(directory.next, f"{math.ceil(at)}\n")


