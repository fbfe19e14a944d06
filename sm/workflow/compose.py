"""Turn a decision into a plan: every step with its text, written down before any is done."""

from __future__ import annotations

import secrets

from sm.errors import SmError
from sm.facts import Life
from sm.history import Verb
from sm.material import GitState, Material
from sm.notices import to_person
from sm.phase import Phase
from sm.prompts import to_agent
from sm.reactions import Decision
from sm.redact import redact
from sm.rows import Step
from sm.session import agent, transcript
from sm.session.launchfiles import Launch
from sm.session.plan import FAILED, Plan, PlannedStep, receipts
from sm.session.registry import IssueSession
from sm.workflow import handover, protocol, signs
from sm.workflow.context import Context
from sm.workflow.observe import Observation
from sm.workflow.replies import texts
from sm.workflow.snapshot import full_check, full_review

FOR_PEOPLE = (Verb.NOTIFY, Verb.REMIND, Verb.COMMENT)
TAIL_LINES = 30


def compose(ctx: Context, session: IssueSession, seen: Observation, decision: Decision) -> Plan:
    """The plan that carries `decision` out."""
    assert decision.row is not None, "only a decision with a row has steps"
    restarts = any(step.verb is Verb.RECOVER for step in decision.row.steps)
    work = git_state(ctx, session) if restarts else GitState()  # no other text tells of it
    material = gather(ctx, session, seen, work)
    last = agent.load(session.dir)
    generation = last.generation + 1 if last else 1
    steps = tuple(_planned(step, material, seen, generation) for step in decision.row.steps)
    return Plan.make(decision.row, decision.key, decision.row.about(seen.facts), steps)


def _planned(step: Step, material: Material, seen: Observation, generation: int) -> PlannedStep:
    if step.verb in FOR_PEOPLE:
        return PlannedStep(step.verb, step.text, to_person(step.text, material))
    if step.verb is Verb.RECOVER:
        text, resume = to_agent(step.text, material), _resumable(seen)
        return PlannedStep(step.verb, step.text, text, generation, resume)
    if step.verb is Verb.INJECT:
        return PlannedStep(step.verb, step.text, to_agent(step.text, material), generation)
    if step.verb is Verb.PARK:
        return PlannedStep(step.verb, text=f"until {material.until}: {material.failure}")
    if step.verb is Verb.WRITE_CI_RESULT:
        return PlannedStep(step.verb, text=f"{material.check.state}\n{material.check.log}")
    return PlannedStep(step.verb, text=seen.facts.head)


def _resumable(seen: Observation) -> str:
    """The agent's own session, which is tried first where an agent is gone.

    One that has gone silent would be silent again, and what could not be resumed once is not
    tried a second time.
    """
    facts = seen.facts
    gone, first = facts.session is Life.GONE, not facts.history.recoveries
    return facts.signs.context if facts.signs and gone and first else ""


def gather(ctx: Context, session: IssueSession, seen: Observation, work: GitState) -> Material:
    """Everything that a text may quote."""
    project, facts = ctx.project, seen.facts
    handoffs = handover.about(ctx.config.bridge_database, session)
    issue = ctx.forge.issue(session.issue)
    return Material(
        project=project.name,
        issue=issue,
        branch=session.branch,
        base=session.base,
        remote=session.remote,
        phase_file=str(ctx.root.phase(session.project, session.issue)),
        nonce=secrets.token_hex(4),
        merge_command=_merge_command(ctx, seen),
        answer_help=_answer_help(ctx, session, seen, handoffs),
        pull=seen.pull,
        check=full_check(ctx, seen.pull),
        review=full_review(ctx, seen.pull, seen.review),
        phase=seen.write.phase,
        phase_text=seen.write.text,
        answered=seen.facts.answered and seen.write.phase is not Phase.NONE,
        reason=redact(seen.write.reason),
        reply="\n\n".join(texts(seen.replies, issue)),
        trouble=_trouble(ctx, session, seen),
        remark=_remark(session, seen),
        git=work,
        tail=_tail(ctx, session, seen),
        log_lines=project.ci.log_lines,
        fixes_left=project.ci.max_fixes - seen.facts.history.fixes,
        worktree=str(session.worktree),
        protocol_known=bool(ctx.profile.system_prompt),
        dialog=signs.question(session.dir, seen.question) if facts.dialog_at is not None else "",
        failure=_failure(session, seen),
        until=signs.until(facts.failure) if facts.failure else "",
        attach_command=_attach_command(session),
        handoffs=handoffs,
    )


def launch_with(ctx: Context, session: IssueSession, prompt: str, *, resume: str = "") -> Launch:
    """How the session's agent is started with `prompt`."""
    return Launch(ctx.project.agent, ctx.profile, prompt, protocol.of(session), resume)


def _merge_command(ctx: Context, seen: Observation) -> str:
    if seen.pull is None or ctx.project.merge.by == "sm":
        return ""
    return f"sm pr merge {seen.pull.number} --project {ctx.project.name}"


def _attach_command(session: IssueSession) -> str:
    return f"sm attach {session.project} {session.issue}"


def _failure(session: IssueSession, seen: Observation) -> str:
    failure = seen.facts.failure
    if failure is None:
        return ""
    said = signs.notice(session.dir)
    return f"{failure.fault} (“{said}”)" if said else str(failure.fault)


def _answer_help(
    ctx: Context, session: IssueSession, seen: Observation, handoffs: tuple[str, ...]
) -> str:
    if seen.facts.dialog_at is not None:
        return f"`{_attach_command(session)}`, in its terminal"
    ways = [f"`sm reply {session.project} {session.issue} TEXT`", "a comment on the issue"]
    if ctx.project.escalation.vault:
        ways.append("the file in the vault")
    if handoffs:  # not which: it stands on the forge, and who knows an id can write there
        ways.append("a decision in the handoff about it")
    return " or ".join(ways)


def _trouble(ctx: Context, session: IssueSession, seen: Observation) -> str:
    if seen.facts.crashed:
        last = next((r for r in reversed(receipts(session.dir)) if r.verb is Verb.RECOVER), None)
        return redact(last.detail) if last and last.detail.startswith(FAILED) else ""
    if not seen.facts.history.troubles:
        return ""
    key = seen.facts.history.troubles[-1]  # what a person could not be told is none of them
    told = [r.trouble for r in receipts(session.dir) if r.trouble and r.plan == key]
    return redact(told[-1]) if told else ""


def _remark(session: IssueSession, seen: Observation) -> str:
    if not (key := seen.facts.remark):
        return ""
    return redact(next(r.remark for r in receipts(session.dir) if r.remark and r.plan == key))


def git_state(ctx: Context, session: IssueSession) -> GitState:
    """What git tells of the worktree, or of the branch alone where that is all that is left."""
    base = f"{session.remote}/{session.base}"
    there = (session.worktree / ".git").exists()
    git = ctx.git.at(session.worktree) if there else ctx.git
    tip = "HEAD" if there else f"refs/heads/{session.branch}"
    try:
        return GitState(
            diff_stat=git.diff_stat(base, tip),
            log=git.log_oneline(base, tip),
            status="\n".join(git.status()) if there else "",
        )
    except SmError:
        return GitState()


def _tail(ctx: Context, session: IssueSession, seen: Observation) -> str:
    """The end of the terminal's transcript, for people: only where a session failed."""
    if not (seen.facts.crashed or seen.write.phase in (Phase.FAILED, Phase.NONE)):
        return ""
    return redact(transcript.tail(session.transcript, TAIL_LINES))
