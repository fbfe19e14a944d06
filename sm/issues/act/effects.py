"""Effects of the matrix's verbs. Every effect finds the traces of its earlier try."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import structs

from sm.adapters.forge.errors import AtWorkError, BehindError, ConflictError, RefusedError
from sm.adapters.forge.model import BOT, CheckState, Hold
from sm.adapters.git_push import RefMovedError
from sm.base.act_guard import before_act
from sm.base.decoder import decode
from sm.base.errors import SmError, StateError, TemporaryError, UsageError
from sm.base.issue_id import spell
from sm.base.refusal import Refusal, Status
from sm.channels import people
from sm.channels.channel import Word
from sm.context import documents
from sm.issues.act import brake
from sm.issues.act.compose import launch_with
from sm.issues.act.problem import SessionProblem
from sm.issues.look import issue_text, phase_file, reviews
from sm.issues.look.escalation import list_asked
from sm.issues.look.observe import find_first
from sm.issues.look.snapshot import last_snapshot
from sm.issues.rules.material import Edited, EditedReview
from sm.issues.work import claim, remnants, slots, worktree
from sm.issues.work.furnish import make_ready
from sm.issues.work.remnants import KEPT_FOR_OTHERS
from sm.messages import delivery, queue
from sm.messages.alerts import note
from sm.messages.ids import derive_id
from sm.messages.presence import find_obstacle
from sm.messages.queue import Message, Mode
from sm.messages.turn_stop import StopResult
from sm.sessions import agent, agent_process, agent_state, monitors, registry, spending_hold
from sm.sessions.agent_state import State
from sm.sessions.history import BEGUN, OVERTAKEN, QUEUED, STOPPED, UNASKED, StepVerb
from sm.sessions.plan import Plan, PlannedStep, has_receipt, read_receipts
from sm.sessions.presence_rule import Disturbance
from sm.sessions.session import IssueSession
from sm.store import events, journal
from sm.store.files import write_atomic


class NotNowError(TemporaryError):
    """The message of a step cannot be handed over at the moment; the plan stays."""

    def __init__(self, problem: SessionProblem) -> None:
        super().__init__(problem.sentence)
        self.problem = problem


class PartlyToldError(SmError):
    """A person was asked, but not in all usual places; the message names the missing ones."""


class PointlessError(SmError):
    """The step has no purpose any more; the plan is dropped, and decided again."""


def check_hands(session: IssueSession) -> None:
    """Refuse to end an agent while a person is at its terminal.

    Raises:
        NotNowError: somebody is there.

    """
    if refusal := find_obstacle(session, Disturbance.END):
        raise NotNowError(SessionProblem(f"{Disturbance.END} waits", refusal))


def make_effect_id(plan: Plan, step: int) -> str:
    """Return the id of one step of one plan; the traces of the step are found by it."""
    return derive_id(f"{plan.key}#{step}@{plan.created_at}")


def perform(session: IssueSession, plan: Plan, step: int) -> str:
    """Do step number `step`; return in a word how it went.

    Raises:
        NotNowError, TemporaryError: try again later.
        PartlyToldError: it is done as far as possible.
        PointlessError: the agent that it is for is gone.
        SmError: it is refused for good.

    """
    planned, ident = plan.steps[step], make_effect_id(plan, step)
    return EFFECTS[planned.verb](session, planned, ident)


# To the agent


def _inject(session: IssueSession, step: PlannedStep, ident: str) -> str:
    if agent.load(session.dir) is None:
        raise PointlessError("there is no agent to tell")
    # Before the messages of other sessions, because the agent waits for this one.
    message = Message(id=ident, text=step.text, mode=Mode.IMPORTANT)
    outcome = delivery.deliver(session, message)
    if outcome.is_delivered:
        return step.name
    if outcome.refusal is Refusal.BLOCKED:  # a person may change that
        raise NotNowError(SessionProblem("not delivered", outcome.refusal))
    if outcome.status is Status.REFUSED:
        raise PointlessError(f"not delivered: {outcome.sentence}")
    if outcome.refusal:
        raise NotNowError(SessionProblem("not delivered yet", outcome.refusal))
    raise NotNowError(SessionProblem(f"not delivered yet: {outcome.status}"))


def withdraw(session: IssueSession, plan: Plan, step: int) -> bool:
    """Take back the message of a step; False if it was handed over already."""
    ident = make_effect_id(plan, step)
    return queue.withdraw(session.dir, ident) or queue.find_place(session.dir, ident) is None


def _hand_off(session: IssueSession, step: PlannedStep, ident: str) -> str:
    """Ask for a handoff document; return its future path, '' if there can be none."""
    try:
        documents.prepare(Path(step.document).parent)
    except StateError:
        return ""
    spending_hold.let_pass(session.dir, ident)
    _inject(session, step, ident)
    return step.document


def _mention(session: IssueSession, step: PlannedStep, ident: str) -> str:
    """Put the text where the agent gets it with its next tool's result; nobody waits for that."""
    queue.put(session.dir, Message(id=ident, text=step.text, mode=Mode.STEER))
    return step.name


def _interrupt(session: IssueSession, step: PlannedStep, ident: str) -> str:
    """End the turn under way.

    A draft stays: a limit is no reason to lose what a person has written, and the key does not
    remove it. But it must not come between two keys of theirs.
    """
    if (mark := brake.confirm_stop(session)) is None:
        # No receipt says that it is done: the same turn may reach the same limit once more.
        raise PointlessError("it may spend again")
    found = brake.stop(session, ident)
    if isinstance(found, Refusal):
        raise NotNowError(SessionProblem("its turn goes on", found))
    if found is StopResult.NO_END:
        raise NotNowError(SessionProblem(f"its turn goes on: {found}"))
    if found is StopResult.NO_KEY:
        return str(found)
    # No hook tells of an interruption.
    if (told := agent_state.read(session.dir)).state is State.BUSY:
        agent_state.overrule(session.dir, told, State.IDLE)
    return STOPPED if found is StopResult.STOPPED or mark.stop == ident else str(found)


# What is known here


def _park(session: IssueSession, step: PlannedStep, ident: str) -> str:
    return step.text  # it only tells, and does nothing


def _adopt_text(session: IssueSession, step: PlannedStep, ident: str) -> str:
    issue_text.adopt(session.dir, decode(step.text, Edited))
    return ""


def _adopt_review(session: IssueSession, step: PlannedStep, ident: str) -> str:
    reviews.adopt(session.dir, decode(step.text, EditedReview))
    return ""


def _create_phase(session: IssueSession, step: PlannedStep, ident: str) -> str:
    try:
        phase_file.create(session.root, session.record.project, session.issue)
    except StateError as error:  # something else is in its place now: a person must know
        raise PointlessError(error.message) from error
    return ""


def _write_ci_result(session: IssueSession, step: PlannedStep, ident: str) -> str:
    return _publish(
        session, session.root.ci_result(session.record.project, session.issue), step.text
    )


# CI and pull requests


def _open_pull(session: IssueSession, step: PlannedStep, ident: str) -> str:
    issue = issue_text.issue_of(session)
    pull = session.project.forge.pulls.open(
        branch=session.record.branch,
        base=session.record.base,
        title=issue.title,
        body=f"Closes {spell(issue.number)}",
        author=BOT,
    )
    return pull.name


def _rerun_ci(session: IssueSession, step: PlannedStep, ident: str) -> str:
    """Begin a run of CI, unless an interrupted try has; else return why that cannot be done."""
    forge, (head, _, at) = session.project.forge, step.text.partition("@")
    now = forge.checks.read(head)
    if now.state is CheckState.PENDING or f"{now.at:.3f}" != at:
        return BEGUN
    try:
        forge.checks.rerun(head)
    except AtWorkError:
        return BEGUN
    except (RefusedError, UsageError) as error:
        return error.message
    return BEGUN


def _merge(session: IssueSession, step: PlannedStep, ident: str) -> str:
    pull = session.project.forge.pulls.find_newest(session.record.branch)
    if pull is None:
        raise PointlessError(f"there is no pull request of '{session.record.branch}'")
    forge = session.project.forge
    try:
        made = forge.pulls.merge(pull.number, head=step.text, author=BOT)
    except (ConflictError, BehindError) as error:
        # Others came first. If the forge shows that, the agent is told; else a person is asked.
        now = forge.pulls.read(pull.number)
        if now.conflicts or now.hold is Hold.BEHIND:
            raise PointlessError(error.message) from error
        raise
    return QUEUED if made.hold is Hold.QUEUED else made.merged_as[:10]


# To people


def _comment(session: IssueSession, step: PlannedStep, ident: str) -> str:
    text = step.text
    if step.name == "stopped" and session.worktree.exists():
        why = "has work that is nowhere else, or somebody is in it"
        text += f"\n\nIts worktree {why}, so it is kept: `{session.worktree}`."
    people.tell(session, structs.replace(_make_word(step, ident), text=text))
    return step.name


def _tell(session: IssueSession, step: PlannedStep, ident: str) -> str:
    people.alert(session, _make_word(step, ident))
    return step.name


def _notify(session: IssueSession, step: PlannedStep, ident: str) -> str:
    if missed := people.ask(session, _word_for_asked(session, step, ident)):
        raise PartlyToldError(f"the question is {'; '.join(missed)}")
    return step.name


def _remind(session: IssueSession, step: PlannedStep, ident: str) -> str:
    people.remind(session, _word_for_asked(session, step, ident))
    _publish(session, session.root.renotify(session.record.project, session.issue), ident)
    return step.name


def _consult(session: IssueSession, step: PlannedStep, ident: str) -> str:
    """Ask the session that is asked before people; return its address.

    If that cannot be done people are asked at once, so nothing here may hold them up.
    """
    first = find_first(session)
    if first is None:
        return f"{UNASKED}: no such session runs"
    message = Message(id=ident, text=step.text)
    try:
        is_new = queue.put(first.dir, message, at_last=before_act)
        if not first.has_matrix:
            monitors.ensure(first)  # it hands over what has to wait
    except SmError as error:
        return f"{UNASKED}: {error.message}"
    if is_new:
        told = events.Told(session=first.name, text=step.text.split("\n", 1)[0])
        journal.record(session.root.journal, told)
    registry.poke(first.dir)
    return first.address


def _word_for_asked(session: IssueSession, step: PlannedStep, ident: str) -> Word:
    """Return what is said to those who are asked, with their names."""
    seen = last_snapshot(session.project.directory)
    asked = list_asked(session.project.settings, seen, session.issue)
    return structs.replace(_make_word(step, ident), people=asked)


def _make_word(step: PlannedStep, ident: str) -> Word:
    need, command, links = step.need, step.command, step.links
    return Word(ident, step.text, step.shortly, need=need, command=command, links=links)


def _publish(session: IssueSession, path: Path, text: str) -> str:
    """Write a file for people and scripts, which sm never reads; return '' or why it is missing.

    In a folder where every user may make files, another may have taken its name. Nothing waits for
    it.
    """
    try:
        write_atomic(path, f"{text}\n")
    except StateError as error:
        left = f"went on without a file that only people and scripts read: {error.message}"
        note(session, left, f"unwritten:{path.name}", parent=False)
        return left
    return ""


# The end of a session


def _label_blocked(session: IssueSession, step: PlannedStep, ident: str) -> str:
    session.project.forge.issues.add_label(session.issue, session.project.settings.labels.blocked)
    return ""


def _restore_backlog(session: IssueSession, step: PlannedStep, ident: str) -> str:
    project = session.project
    why_not = _why_not_in_backlog(session)
    if not why_not:
        project.forge.issues.add_label(session.issue, project.settings.labels.backlog)
    project.forge.issues.remove_label(session.issue, project.settings.labels.in_progress)
    return f"not set: {why_not}" if why_not else ""


def _why_not_in_backlog(session: IssueSession) -> str:
    # An issue with the label is worked on as it stands. A stranger may have changed its text, and
    # no trusted person has read that.
    if not issue_text.is_untouched(session):
        return "the text was edited by an account that is not trusted"
    if any(
        one.verb is StepVerb.LABEL_BLOCKED and one.trouble for one in read_receipts(session.dir)
    ):
        return "nothing else says that the issue is blocked, and it would be picked up again"
    return ""


def _clean_labels(session: IssueSession, step: PlannedStep, ident: str) -> str:
    project = session.project
    for label in (project.settings.labels.in_progress, project.settings.labels.backlog):
        project.forge.issues.remove_label(session.issue, label)
    return ""


def _close_issue(session: IssueSession, step: PlannedStep, ident: str) -> str:
    try:
        session.project.forge.issues.close(session.issue)
    except RefusedError as error:  # such as for an open issue that it depends on
        said = (
            f"the forge does not close issue {spell(session.issue)}: {error.said or error.message}"
        )
        people.tell(session, Word(ident, f"{said}. Its work is merged: close it by hand.", said))
        return f"kept open: {error.said or error.message}"
    return ""


def _close_pull(session: IssueSession, step: PlannedStep, ident: str) -> str:
    return remnants.close_pull(session.project, session.issue, session.record.branch)


def _kill(session: IssueSession, step: PlannedStep, ident: str) -> str:
    agent_process.stop(session.tmux, session)
    return ""


def _recover(session: IssueSession, step: PlannedStep, ident: str) -> str:
    project = session.project
    note = make_ready(session)
    phase_file.create(project.root, session.record.project, session.issue)
    launch = launch_with(session, step.text, resume=step.resume)
    agent_process.launch(session.tmux, session, launch, generation=step.generation)
    return note


def _keep_work(session: IssueSession, step: PlannedStep, ident: str) -> str:
    from sm.issues.work import takeover  # most sessions have no attempt

    return takeover.keep_work(session)


def _remove_worktree(session: IssueSession, step: PlannedStep, ident: str) -> str:
    return str(
        worktree.remove(
            session.project.git, session.own_settings, session.issue, merged_head=step.text
        )
    )


def _delete_branch(session: IssueSession, step: PlannedStep, ident: str) -> str:
    try:
        session.project.git.delete_ref(
            session.project.settings.remote, f"refs/heads/{session.record.branch}", expect=step.text
        )
    except RefMovedError:
        return "" if _delete_taken_over(session, step.text) else KEPT_FOR_OTHERS
    return ""


def _delete_taken_over(session: IssueSession, merged: str) -> bool:
    """Delete the branch if nothing but this attempt's takeover came after the merge."""
    if session.attempt < 2:
        return False
    from sm.issues.work import takeover

    try:
        return takeover.delete_taken_over(session.project, session.record.branch, merged)
    except RefMovedError:
        return False


def _delete_empty_branch(session: IssueSession, step: PlannedStep, ident: str) -> str:
    return remnants.delete_branch(session.project, session.record.branch)


def _release_claim(session: IssueSession, step: PlannedStep, ident: str) -> str:
    project, record = session.project, session.record
    if session.attempt:
        from sm.issues.work import wip

        is_ours = wip.give_up(project.git, record.remote, record.issue, record.claim)
        return "" if is_ours else claim.OVERTAKEN
    return claim.release(project.git, project.settings, session.issue, project.root)


def forget(session: IssueSession) -> None:
    """Give back the session's slot, and remove its files; those that stay are put on record."""
    slots.free(session)
    project = session.project
    for problem in registry.forget(project.root, session, project.config.logs):
        project.record(events.Problem(session=session.name, text=problem))


def _forget(session: IssueSession, step: PlannedStep, ident: str) -> str:
    if has_receipt(session.dir, OVERTAKEN):  # what is asked may be its successor's question
        people.withdraw(session)
    else:
        people.settle(session)
    forget(session)
    return ""


EFFECTS: dict[StepVerb, Callable[[IssueSession, PlannedStep, str], str]] = {
    StepVerb.INJECT: _inject,
    StepVerb.CREATE_PHASE: _create_phase,
    StepVerb.WRITE_CI_RESULT: _write_ci_result,
    StepVerb.OPEN_PULL: _open_pull,
    StepVerb.RERUN_CI: _rerun_ci,
    StepVerb.MERGE: _merge,
    StepVerb.NOTIFY: _notify,
    StepVerb.REMIND: _remind,
    StepVerb.CONSULT: _consult,
    StepVerb.COMMENT: _comment,
    StepVerb.TELL: _tell,
    StepVerb.LABEL_BLOCKED: _label_blocked,
    StepVerb.RESTORE_BACKLOG: _restore_backlog,
    StepVerb.CLEAN_LABELS: _clean_labels,
    StepVerb.CLOSE_ISSUE: _close_issue,
    StepVerb.CLOSE_PULL: _close_pull,
    StepVerb.KILL: _kill,
    StepVerb.RECOVER: _recover,
    StepVerb.PARK: _park,
    StepVerb.LET_GO_ON: _park,
    StepVerb.HAND_OFF: _hand_off,
    StepVerb.MENTION: _mention,
    StepVerb.INTERRUPT: _interrupt,
    StepVerb.ADOPT_TEXT: _adopt_text,
    StepVerb.ADOPT_REVIEW: _adopt_review,
    StepVerb.KEEP_WORK: _keep_work,
    StepVerb.REMOVE_WORKTREE: _remove_worktree,
    StepVerb.DELETE_BRANCH: _delete_branch,
    StepVerb.DELETE_EMPTY_BRANCH: _delete_empty_branch,
    StepVerb.RELEASE_CLAIM: _release_claim,
    StepVerb.FORGET: _forget,
}
