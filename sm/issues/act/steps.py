"""Steps of a plan: carries them out one after the other, each with its receipt."""

from __future__ import annotations

from msgspec import structs

from sm.adapters.git_call import GitLockedError
from sm.base.act_guard import OvertakenError, before_act
from sm.base.errors import SmError, TemporaryError
from sm.issues.act import attempts, pending, retry
from sm.issues.act.effects import (
    NotNowError,
    PartlyToldError,
    PointlessError,
    check_hands,
    make_effect_id,
    perform,
)
from sm.issues.look import issue_text
from sm.issues.work import slots
from sm.messages.notification import tell_of_step
from sm.sessions import plan as plans
from sm.sessions.history import Receipt, StepVerb
from sm.sessions.plan import Plan, PlannedStep
from sm.sessions.session import IssueSession
from sm.store import events
from sm.store.failpoint import crash_point

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


def carry_out(session: IssueSession, plan: Plan) -> bool:
    """Do the steps of the plan that are left; False if the session is over.

    Raises:
        SmError: a step is not possible now; the plan stays for another pass.

    """
    project = session.project
    directory = session.dir
    first = plans.find_next_step(plan, plans.read_receipts(directory))
    for number in range(first, len(plan.steps)):
        verb = plan.steps[number].verb
        if pending.has_to_wait(session, plan, number):
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


def _try(session: IssueSession, plan: Plan, number: int) -> Receipt:
    """Try a step; return its receipt: done, or given up."""
    verb = plan.steps[number].verb
    if verb is StepVerb.KILL and not pending.is_commanded(session, plan):
        # They were looked for before the plan was made, and may have come since.
        check_hands(session)
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
