"""Turns a decision into a plan: writes every step with its text before the first one is done."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from msgspec import structs

from sm.adapters.forge.model import CheckState, Comment, PullRequest
from sm.base.clock import format_time
from sm.base.errors import SmError
from sm.base.nonce import make_nonce
from sm.base.phase import Phase
from sm.base.redact import redact
from sm.base.text import one_line
from sm.channels import people
from sm.channels.comments import COMMENT
from sm.context import documents
from sm.context.rotation_files import is_readable
from sm.context.rotation_texts import Form, name_document
from sm.issues.act.unblock import spell_unblock
from sm.issues.look import discussion, escalation, reviews
from sm.issues.look.answers import read_texts
from sm.issues.look.issue_text import (
    find_trust,
    is_trusted_comment,
    issue_of,
    make_issue,
    read_taken,
)
from sm.issues.look.observe import Observation
from sm.issues.look.snapshot import full_check
from sm.issues.rules.decide import Decision
from sm.issues.rules.facts import Facts
from sm.issues.rules.material import SOURCES, Edited, EditedReview, GitState, LongText, Material
from sm.issues.rules.notices import find_answer, tell_need, write_notice, write_short_notice
from sm.issues.rules.outage import OutageError, find_outage
from sm.issues.rules.prompts import write_prompt
from sm.issues.rules.rows import Step
from sm.issues.rules.spending import tell_turn
from sm.sessions import agent, terminal, turn
from sm.sessions.failure import FailureCause
from sm.sessions.history import KILLED, TELLING, StepVerb
from sm.sessions.launch import Launch
from sm.sessions.plan import Plan, PlannedStep, read_receipts
from sm.sessions.session import IssueSession

TAIL_LINES = 30
TO_AGENT = frozenset({StepVerb.INJECT, StepVerb.RECOVER, StepVerb.MENTION, StepVerb.HAND_OFF})


def compose(session: IssueSession, seen: Observation, decision: Decision) -> Plan:
    """Return the plan that carries out `decision`.

    Raises:
        OutageError: the agent was to be told of a failure of CI that is not the commit's fault.

    """
    row, facts = decision.row, seen.facts
    assert row is not None, "only a decision with a row has steps"
    restarts = any(step.verb is StepVerb.RECOVER for step in row.steps)
    work = read_git_state(session) if restarts else GitState()  # no other text tells of it
    needed = {source for step in row.steps for source in SOURCES.get(step.text, ())}
    if any(step.verb is StepVerb.WRITE_CI_RESULT for step in row.steps):
        needed.add(LongText.LOG)
    material = structs.replace(gather(session, seen, work, needed), row=row.name)
    tells_of_failure = facts.red and LongText.LOG in needed and not restarts
    if tells_of_failure and facts.policy.repeats_ci:  # the embedded forge knows what it has killed
        ci = session.project.settings.ci
        if reason := find_outage(material.check, ci.infrastructure, ci.infrastructure_steps):
            raise OutageError(facts.run, reason)
    last = agent.load(session.dir)
    generation = last.generation + 1 if last else 1
    steps = tuple(_plan_step(step, material, seen, generation) for step in row.steps)
    write = row.about(facts)
    plan = Plan(decision.key, row.name, write, time.time(), steps, row.counts, row.provisional)
    return plan.about_run(facts.run, again=facts.rerun)


def _plan_step(step: Step, material: Material, seen: Observation, generation: int) -> PlannedStep:
    if step.verb in TELLING:
        return _plan_word(step, material)
    if step.verb in TO_AGENT:
        return _plan_text(step, material, seen, generation)
    if step.verb is StepVerb.CONSULT:
        return PlannedStep(step.verb, step.text, write_prompt(step.text, material))
    if step.verb in (StepVerb.PARK, StepVerb.LET_GO_ON):
        return PlannedStep(step.verb, text=_tell_stop(material, seen.facts))
    if step.verb is StepVerb.REMOVE_WORKTREE:  # without a branch only merged work is safe
        return PlannedStep(step.verb, text=seen.facts.head if seen.facts.merged else "")
    if step.verb is StepVerb.ADOPT_TEXT:
        return PlannedStep(step.verb, text=msgspec.json.encode(seen.edited).decode())
    if step.verb is StepVerb.ADOPT_REVIEW:
        return PlannedStep(step.verb, text=msgspec.json.encode(seen.edited_review).decode())
    if step.verb is StepVerb.WRITE_CI_RESULT:
        return PlannedStep(step.verb, text=f"{material.check.state}\n{material.check.log}")
    if step.verb is StepVerb.RERUN_CI:
        return PlannedStep(step.verb, text=seen.facts.run)
    return PlannedStep(step.verb, text=seen.facts.head)


def _plan_text(step: Step, material: Material, seen: Observation, generation: int) -> PlannedStep:
    """Plan a message to the agent."""
    planned = PlannedStep(step.verb, step.text, write_prompt(step.text, material), generation)
    if step.verb is StepVerb.RECOVER:
        return structs.replace(planned, resume=seen.facts.resumes)
    if step.verb is StepVerb.HAND_OFF:
        return structs.replace(planned, document=material.document)
    return planned


def _tell_stop(material: Material, facts: Facts) -> str:
    """Say why the agent does not go on, and until when; '' if it does."""
    if facts.brake and facts.allowance:
        shown = one_line(facts.allowance.shown)
        return f"until {material.limit_until}: {shown}" if material.limit_until else f"({shown})"
    if facts.account and facts.account.fault is FailureCause.ACCESS:
        return f"for the login of {one_line(facts.account.name)}: {material.failure}"
    return f"until {material.until}: {material.failure}" if facts.failure else ""


def _plan_word(step: Step, material: Material) -> PlannedStep:
    need, command = find_answer(step.text, material)
    return PlannedStep(
        step.verb,
        step.text,
        write_notice(step.text, material),
        shortly=write_short_notice(step.text, material),
        need=need,
        why=tell_need(step.text, material),
        command=command,
        links=material.links,
    )


def gather(
    session: IssueSession,
    seen: Observation,
    work: GitState,
    needed: Collection[LongText] = tuple(LongText),
) -> Material:
    """Gather all that a text may quote; of the long texts only what is `needed`."""
    project = session.project
    settings, facts, cycle = project.settings, seen.facts, session.settings.cycle
    channels = people.open_channels(session)
    if LongText.ISSUE in needed:
        issue = issue_of(session)
    else:  # if its text is lost, only what is on record
        issue = make_issue(session, read_taken(session.dir))
    said: tuple[Comment, ...] = ()
    if LongText.COMMENTS in needed and any(one.id.startswith(COMMENT) for one in seen.replies):
        said = _read_comments(session)
    pull = seen.pull
    if pull and LongText.MERGE in needed:  # with all that the forge says of its merge
        pull = project.forge.pulls.read(pull.number)
    # CI keeps no log of a run that passed.
    has_log = seen.check.state in (CheckState.FAILURE, CheckState.BROKEN)
    was_run_again = any(run.startswith(f"{facts.head}@") for run in facts.history.reruns)
    failed = facts.crashed or seen.write.phase in (Phase.FAILED, Phase.NONE)
    return Material(
        project=settings.name,
        issue=issue,
        branch=session.record.branch,
        base=session.record.base,
        remote=session.record.remote,
        phase_file=str(project.root.phase(session.record.project, session.issue)),
        nonce=make_nonce(4),
        merge_command=f"sm pr merge {seen.pull.number} --project {project.name}"
        if seen.pull and settings.merge.by != "sm"
        else "",
        answer_help=_answer_help(session, seen, people.name_ways(session, channels)),
        pull=pull,
        repeated=was_run_again or not facts.policy.repeats_ci,
        check=full_check(project, seen.pull) if LongText.LOG in needed and has_log else seen.check,
        review=reviews.take(session, seen.pull, seen.review)
        if LongText.REVIEW in needed
        else seen.review,
        said=seen.heard.comments if seen.heard and seen.facts.said else (),
        discussion=discussion.read_discussion(session, seen.pull.number)[-discussion.LATEST :]
        if LongText.DISCUSSION in needed and seen.pull
        else (),
        phase=seen.write.phase,
        phase_text=seen.write.text,
        answered=seen.facts.answered and seen.write.phase is not Phase.NONE,
        reason=redact(seen.write.reason),
        reply="\n\n".join(read_texts(seen.replies, said)),
        answered_by=seen.replies[0].author
        if seen.replies and all(one.by_session for one in seen.replies)
        else "",
        words=escalation.read_words(session, seen),
        first_until=format_time(facts.now + facts.policy.first_for_s, facts.now),
        trouble=escalation.describe_trouble(session, seen),
        remark=_remark(session, seen),
        git=work,
        tail=redact(terminal.read_tail(session.terminal_log, TAIL_LINES)) if failed else "",
        log_lines=settings.ci.log_lines,
        fixes_left=settings.ci.max_fixes - seen.facts.history.fixes,
        worktree=str(session.worktree),
        protocol_known=bool(session.profile.system_prompt),
        dialog=turn.read_question(session.dir, seen.question)
        if facts.dialog_at is not None
        else "",
        question=escalation.read_asked(facts),
        failure=escalation.describe_failed_turn(session, seen),
        until=format_time(facts.told_until, facts.failure.at) if facts.failure else "",
        asked_row=facts.escalation.row if facts.escalation else "escalate",
        locked_out=escalation.is_locked_out(facts),
        stuck=escalation.is_stuck(facts),
        attach_command=_attach_command(session),
        reviewed_at=escalation.find_review_page(session.project.settings, seen.pull),
        edited=seen.edited or Edited(),
        edited_review=seen.edited_review or EditedReview(),
        channels=people.introduce(session, channels),
        killed=facts.history.has(KILLED),
        unblock_command=spell_unblock(settings, session.issue),
        conflicts=_find_conflicts(session)
        if facts.conflicts and LongText.CONFLICTS in needed
        else (),
        links=_list_links(session, seen.pull),
        allowance=facts.allowance,
        turn=tell_turn(facts),
        limit_until=format_time(facts.allowance.until, facts.now)
        if facts.allowance and facts.allowance.until is not None
        else "",
        document=_find_document(session, facts),
        document_form=Form(cycle.sections, cycle.header).told if facts.brake else "",
    )


def _find_document(session: IssueSession, facts: Facts) -> str:
    """Find where a handoff document is to be written for a limit; later, where it is."""
    halt = facts.history.halt
    if halt is None:
        return ""
    if not facts.brake:
        return halt.document if halt.document and is_readable(Path(halt.document)) else ""
    try:
        folder = documents.find_folder(session, session.settings.cycle)
    except SmError:
        return ""
    at = datetime.fromtimestamp(facts.now)
    while (folder / name_document(at)).exists():
        at += timedelta(minutes=1)
    return str(folder / name_document(at))


def _list_links(session: IssueSession, pull: PullRequest | None) -> tuple[str, ...]:
    project = session.project.settings
    pages = (
        project.forge.link_pull(pull.number) if pull else "",
        project.link_issue(session.issue),
    )
    return tuple(filter(None, pages))


def _find_conflicts(session: IssueSession) -> tuple[str, ...]:
    """List the files in conflict, by the clone's own git: hardly a forge names them."""
    git, record = session.project.git, session.record
    try:
        base = git.fetch_branch(record.remote, record.base)
        return git.find_conflicts(base, git.fetch_branch(record.remote, record.branch))
    except SmError:
        return ()  # the agent sees them when it rebases


def _read_comments(session: IssueSession) -> tuple[Comment, ...]:
    """Read the comments that may reach the agent: they may have been edited since the last look."""
    found = session.project.forge.issues.read_comments(session.issue)
    trust = find_trust(
        session.project, [name for one in found for name in (one.author, one.editor)]
    )
    return tuple(one for one in found if is_trusted_comment(one, trust))


def launch_with(session: IssueSession, prompt: str, *, resume: str = "") -> Launch:
    """Return how the session's agent is started with `prompt`."""
    return Launch(
        session.project.settings.agent, session.profile, prompt, session.explain_protocol(), resume
    )


def _attach_command(session: IssueSession) -> str:
    return f"sm attach {session.record.project} {session.issue}"


def _answer_help(session: IssueSession, seen: Observation, ways: Iterable[str]) -> str:
    if seen.facts.dialog_at is not None:
        return f"`{_attach_command(session)}`, in its terminal"
    return " or ".join((f"`sm reply {session.record.project} {session.issue} TEXT`", *ways))


def _remark(session: IssueSession, seen: Observation) -> str:
    if not (key := seen.facts.remark):
        return ""
    return redact(next(r.remark for r in read_receipts(session.dir) if r.remark and r.plan == key))


def read_git_state(session: IssueSession) -> GitState:
    """Return git's words about the worktree, or about the branch if only that is left."""
    base = f"{session.record.remote}/{session.record.base}"
    there = (session.worktree / ".git").exists()
    git = session.project.git.at(session.worktree) if there else session.project.git
    tip = "HEAD" if there else f"refs/heads/{session.record.branch}"
    try:
        log = git.log_oneline(base, tip)
        return GitState(
            diff_stat=git.diff_stat(base, tip) if log else "",  # no commit has changed anything
            log=log,
            status="\n".join(git.status_lines()) if there else "",
        )
    except SmError:
        return GitState()
