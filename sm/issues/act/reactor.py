"""Observe, decide, act: one pass over one session, under its lock, resumable at every step."""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from collections.abc import Callable, Iterator
from functools import partial

from msgspec import Struct, structs

from sm.adapters.forge.spender import spend_for
from sm.adapters.git_call import GitLockedError
from sm.base.act_guard import OvertakenError, before_act
from sm.base.errors import SmError, TemporaryError, UsageError
from sm.base.foreign import read_seconds
from sm.base.output import warn
from sm.base.redact import redact
from sm.base.refusal import Refusal
from sm.base.text import one_line
from sm.channels import people
from sm.context.monitor import tend_context
from sm.issues.act import attempts, limiting, paused, pending, retry, starts
from sm.issues.act.compose import compose, launch_with
from sm.issues.act.effects import (
    NotNowError,
    PartlyToldError,
    PointlessError,
    make_effect_id,
    perform,
)
from sm.issues.act.forge_answers import answer_requests
from sm.issues.act.holdups import tell_of_holdups
from sm.issues.act.problem import SessionProblem, read_problem, write_problem
from sm.issues.look import discussion, issue_text, reviews
from sm.issues.look.observe import Observation, observe
from sm.issues.look.snapshot import snapshot
from sm.issues.rules.decide import Decision, HeldReaction, decide
from sm.issues.rules.decision_input import Life
from sm.issues.rules.facts import Facts
from sm.issues.rules.outage import OutageError
from sm.issues.rules.spending import WHILE_PAUSED
from sm.issues.work import locks, slots
from sm.messages import alerts
from sm.messages.follow_up import see_to, tend_messages
from sm.messages.notification import tell_of_step
from sm.messages.presence import find_obstacle, observe_hands
from sm.sessions import account_faults, agent_process, pause, registry
from sm.sessions import plan as plans
from sm.sessions.account_fault import AccountCourse
from sm.sessions.followers import have_followed
from sm.sessions.history import KILLED, Receipt, StepVerb, fold
from sm.sessions.plan import Plan, PlannedStep
from sm.sessions.presence_rule import LEFT_S, Disturbance
from sm.sessions.project import Project, load_last_project
from sm.sessions.session import IssueSession
from sm.store import events, lock
from sm.store.failpoint import crash_point
from sm.store.files import backdate, discard, read_guarded, write_atomic
from sm.store.paths import SessionDir
from sm.store.repair import repair

ROUNDS = 20
"""Decisions in one pass. The matrix comes to rest after two or three; more would be a loop."""

ISSUE_VERBS = frozenset(
    {
        StepVerb.COMMENT,
        StepVerb.LABEL_BLOCKED,
        StepVerb.RESTORE_BACKLOG,
        StepVerb.CLEAN_LABELS,
        StepVerb.CLOSE_ISSUE,
    }
)
"""Verbs that write on the session's issue at its end."""
FORGE_VERBS = frozenset(
    {StepVerb.OPEN_PULL, StepVerb.RERUN_CI, StepVerb.MERGE, StepVerb.CLOSE_ISSUE}
)
"""Verbs after which the forge looks different, so its last observation is worth nothing."""

BY_PERSON = (Refusal.DRAFT, Refusal.TYPING, Refusal.MODE, Refusal.DIALOG)
"""Refusals by a person. The session waits for them, and leaves its slot to others."""

REASON_LIMIT = 300
"""Greatest number of characters of an agent's reason that the journal has."""


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


Choose = Callable[[IssueSession, float, Moment], Plan | None]
"""Function that chooses the next plan, with a look at the forge from a moment on; None: at rest."""


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
            again_at = min(limiting.tend(session), time.time() + limiting.UNUSABLE_S)
            for _ in _passes(session, directory, _choose_of_limits):
                pass
            _call_sooner(directory, again_at)
        have_followed(session, partial(limiting.wake_if_changed, session))


def _react(project: Project, name: str, directory: SessionDir) -> None:
    with lock.hold(directory.lock, timeout_s=120):
        if not directory.identity.exists():
            return
        session = registry.load_issue_session(project.root, name).provide(project=project)
        with spend_for(name), attempts.fence_in(session) as fence:
            again_at = math.inf
            if not attempts.is_overtaken(session):
                again_at = min(limiting.tend(session), _tend(session))
            attempts.note(session, fence)
            for _ in _passes(session, directory, _choose_plan):
                attempts.note(session, fence)
            if fence and directory.identity.exists():
                again_at = min(again_at, see_to(session, lambda: attempts.save_work(session)))
        _call_sooner(directory, again_at)
    have_followed(session, partial(limiting.wake_if_changed, session))


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
            plan = choose(session, newer_than, started)
            if plan is None or not _carry_out(session, plan):
                return
        except OvertakenError as error:
            attempts.give_up(session, error.message)
            plan = None
        except SmError as error:
            if not _unlock(session, error):
                if isinstance(error, NotNowError) and error.problem.refusal in BY_PERSON:
                    slots.free(session)
                _rest(directory, started, retry.note_obstacle(session, error))
                return
            plan = None
        if plan and any(step.verb in FORGE_VERBS for step in plan.steps):
            newer_than = time.time()
        yield
    raise SmError(f"'{session.name}' did not come to rest in {ROUNDS} decisions: see sm trace")


def _choose_plan(session: IssueSession, newer_than: float, started: Moment) -> Plan | None:
    """Return the plan under way, or a new one; None: the session rests until it is due."""
    _refuse_another(session)
    if not paused.rests(session):
        return pending.find(session) or _decide(session, newer_than, started)
    return _choose_stop(session, newer_than, started)


def _refuse_another(session: IssueSession) -> None:
    """Leave another issue with the same number alone; only a person's command to end goes on."""
    try:
        issue_text.refuse_another(session)
    except issue_text.AnotherIssueError:
        if not fold(plans.read_receipts(session.dir)).has(KILLED):
            raise


def _choose_of_limits(session: IssueSession, newer_than: float, started: Moment) -> Plan | None:
    """Return the plan under way, or one that ends a turn; None: nothing is to be done."""
    return pending.find(session) or _choose_stop(session, newer_than, started)


def _choose_stop(session: IssueSession, _newer_than: float, started: Moment) -> Plan | None:
    """Return a plan that ends the turn of an agent over its limit; None: there is no such turn."""
    plan = _stop_spending(session)
    if plan is None:
        _rest(session.dir, started, started.at + pause.PASS_S)
    return plan


def _stop_spending(session: IssueSession) -> Plan | None:
    """Save and return that plan; None if no turn is to end, or another plan is under way."""
    if not limiting.may_stop(session) or pending.find(session):
        return None
    seen = _observe(session, 0.0)
    decision = decide(seen.facts, WHILE_PAUSED)
    return _save_plan(session, seen, decision) if decision.acts else None


def _unlock(session: IssueSession, error: SmError) -> bool:
    """Remove a lock that no git holds, if one was in the way; say whether there was one."""
    if not isinstance(error, GitLockedError):
        return False
    return bool(locks.clear(session.project, session.name))


def _decide(session: IssueSession, newer_than: float, started: Moment) -> Plan | None:
    """Save and return the plan for what is due now; None if the session rests until `next`."""
    directory, settled_at = session.dir, math.inf
    seen = _observe(session, newer_than)
    if seen.facts.session is Life.ALIVE:
        settled_at = starts.settle(session)
    elif starts.note(session):
        seen = _observe(session, newer_than)
    seen, decision = _consider(session, seen)
    _note_held(session, decision.held)
    if not decision.acts:
        _settle_slot(session, seen.facts, decision)
        _rest(directory, started, min(decision.wake_at, settled_at))
        return None
    try:
        return _save_plan(session, seen, decision)
    except OutageError as outage:
        _note_outage(session, outage)
        return _decide(session, newer_than, started)


def _save_plan(session: IssueSession, seen: Observation, decision: Decision) -> Plan:
    plan = compose(session, seen, decision)
    crash_point("plan:before-save")
    plans.save(session.dir, plan)
    crash_point("plan:after-save")
    limits = decision.row.list_limits(seen.facts.policy) if decision.row else {}
    session.project.record(
        events.Decided(
            session=session.name,
            row=plan.row,
            phase=seen.write.text,
            reason=one_line(redact(seen.write.reason), REASON_LIMIT),
            limits=limits,
            written_at=round(seen.write.at, 3) if seen.write.text else 0.0,
        )
    )
    return plan


def _consider(session: IssueSession, seen: Observation) -> tuple[Observation, Decision]:
    """Decide what is due, with the facts that it needs: who is at the terminal, is a slot free."""
    waited = seen.facts.slotless
    seen = _add_facts(seen, slotless=False)
    decision = decide(seen.facts)
    if decision.concerns_people:
        seen = _add_facts(seen, hands=observe_hands(session))
        decision = decide(seen.facts)
    if decision.row and decision.row.needs_slot(seen.facts) and not slots.take(session):
        if not waited:
            limit = session.project.settings.max_sessions
            why = f"no slot is free (max_sessions: {limit})"
            session.project.record(events.Waiting(session=session.name, reason=why))
        seen = _add_facts(seen, slotless=True, slot_at=seen.facts.now)
        decision = decide(seen.facts)
    account = seen.facts.account
    goes_on = decision.row is not None and decision.row.spends
    if account and account.is_in_line and goes_on and not account_faults.take_turn(session):
        seen = _add_facts(seen, account=structs.replace(account, way=AccountCourse.REST))
        decision = decide(seen.facts)
    return seen, decision


def _add_facts(seen: Observation, **facts: object) -> Observation:
    return structs.replace(seen, facts=structs.replace(seen.facts, **facts))


def _settle_slot(session: IssueSession, facts: Facts, decision: Decision) -> None:
    """Let the session hold a slot if its agent is at work, and else none."""
    if decision.queued:
        return
    if facts.is_at_work and not decision.held:
        slots.occupy(session)
    else:
        slots.free(session)


def _note_held(session: IssueSession, held: HeldReaction | None) -> None:
    """Show people what waits for a person at the terminal; the journal has it once.

    A draft may be forgotten there: after a while somebody has to know.
    """
    directory = session.dir
    if held is None:
        discard(directory.problem)
        return
    problem = SessionProblem(f"{held.deed} waits", held.refusal)
    if read_problem(directory) != problem:
        write_problem(directory, problem)
        session.project.record(events.Waiting(session=session.name, reason=problem.sentence))
        return
    since = directory.problem.stat().st_mtime
    if held.refusal is Refusal.DRAFT and time.time() > since + LEFT_S:
        text, look = f"is left as it is: {problem.sentence}", f"sm attach {session.address}"
        alerts.note(session, text, f"held:{since:.0f}", command=look)


def _note_outage(session: IssueSession, outage: OutageError) -> None:
    """Count that run of CI as broken from now on, and no more as a failure of the commit."""
    ident, said = f"outage:{outage.run}", events.Problem(session=session.name, text=outage.reason)
    plans.add_receipt(
        session.dir,
        Receipt(time.time(), ident, "outage", run=outage.run, outage=outage.reason),
    )
    session.project.record(said)


def _observe(session: IssueSession, newer_than: float) -> Observation:
    seen = observe(session, newer_than=newer_than)
    if not seen.problem:
        return seen
    # An unreadable phase file cuts the agent off: a person has to know, once each time.
    told = f"{seen.facts.addressed_at:.0f}:{seen.problem}"
    cause = f"phase-file:{hashlib.sha256(told.encode()).hexdigest()[:8]}"
    if cause in seen.facts.history.troubles:
        return seen
    plans.add_receipt(session.dir, Receipt(time.time(), cause, "phase-file", trouble=seen.problem))
    session.project.record(events.Problem(session=session.name, text=seen.problem))
    return observe(session, newer_than=newer_than)


def _carry_out(session: IssueSession, plan: Plan) -> bool:
    """Do the steps that are left; False if the session is over.

    Raises:
        SmError: a step is not possible now; the plan stays for another pass.

    """
    project = session.project
    directory = session.dir
    first = plans.find_next_step(plan, plans.read_receipts(directory))
    for number in range(first, len(plan.steps)):
        verb = plan.steps[number].verb
        if paused.has_to_wait(session, plan, number):
            return True
        crash_point(f"{verb}:before")
        are_told = _tell_of(session, plan, number)
        if not are_told and verb is StepVerb.FORGET and retry.is_young(session, plan):
            raise TemporaryError("who waits for the session cannot be told that it ends")
        try:
            receipt = _do(session, plan, number)
        except PointlessError as error:
            project.record(events.Dropped(session=session.name, row=plan.row, reason=error.message))
            plans.drop(directory)
            return True
        crash_point(f"{verb}:after")
        project.record(_make_event(session, plan.steps[number], receipt))
        if receipt.detail and receipt.trouble:
            project.record(events.Problem(session=session.name, text=receipt.trouble))
        if verb is StepVerb.FORGET:
            return False
        plans.add_receipt(directory, receipt)
        crash_point(f"{verb}:receipt")
        if verb is StepVerb.KILL and plan.ends_session:
            slots.free(session)
    plans.add_receipt(directory, plan.receipt(len(plan.steps)))
    crash_point("plan:before-drop")
    plans.drop(directory)
    return True


def _tell_of(session: IssueSession, plan: Plan, number: int) -> bool:
    """Tell other sessions of a step; return whether everybody who is to be told was told."""
    if attempts.is_overtaken(session):
        return True
    if attempts.is_outward(session, plan.steps[number].verb):
        before_act()
    return tell_of_step(session, plan, number)


def _make_event(session: IssueSession, step: PlannedStep, receipt: Receipt) -> events.StepDone:
    return events.StepDone(
        session=session.name,
        verb=str(receipt.verb),
        row=receipt.row,
        result=receipt.detail,
        trouble=receipt.trouble,
        need=(step.need or "") if step.why else "",
        text=step.why,
        command=step.command,
    )


def _do(session: IssueSession, plan: Plan, number: int) -> Receipt:
    """Return the receipt of a step, with what only its plan knows of it."""
    receipt = _try(session, plan, number)
    if receipt.verb is StepVerb.RECOVER:
        return structs.replace(receipt, resumed=plan.steps[number].resume)
    if receipt.verb is StepVerb.NOTIFY:  # its comment is found again by that
        return structs.replace(receipt, marker=make_effect_id(plan, number))
    return receipt


def _check_hands(session: IssueSession, plan: Plan) -> None:
    """Keep the step that ends the agent from people at its terminal.

    They were looked for before the plan was made, and may have come since.

    Raises:
        NotNowError: somebody is there.

    """
    refusal = (
        None if pending.is_commanded(session, plan) else find_obstacle(session, Disturbance.END)
    )
    if refusal:
        raise NotNowError(SessionProblem(f"{Disturbance.END} waits", refusal))


def _try(session: IssueSession, plan: Plan, number: int) -> Receipt:
    """Try a step; return its receipt: done, or given up."""
    verb = plan.steps[number].verb
    if verb is StepVerb.KILL:
        _check_hands(session, plan)
    try:
        if verb in ISSUE_VERBS:
            issue_text.refuse_another(session)
        return plan.receipt(number, detail=perform(session, plan, number))
    except PartlyToldError as error:
        return plan.receipt(number, detail=plan.steps[number].name, trouble=error.message)
    except (NotNowError, PointlessError, GitLockedError, OvertakenError):
        raise  # a lock in the way of a restart is no crash
    except SmError as error:
        if verb is StepVerb.RECOVER:
            # A restart that fails is a crash like any other: counted, paused for, given up at last.
            return plan.receipt(number, detail=f"{plans.FAILED}{error.message}")
        if not retry.is_given_up(session, plan, verb, error):
            raise
        return plan.receipt(number, trouble=error.message)


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
