"""Prompts of sm to an agent. Words of others in them are in `quotes.py`: fenced as data. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sm.adapters.forge.model import Check, Review
from sm.base import quotation
from sm.base.issue_id import spell
from sm.base.phase import SENTINELS, Phase, explain_protocol
from sm.base.quotation import SENTENCE_LIMIT, fence, first_part, name
from sm.base.text import format_count, one_line
from sm.issues.rules.facts import CONTEXT_REFUSED
from sm.issues.rules.material import Material, cite_pull, name_pull
from sm.issues.rules.quotes import (
    name_issue_command,
    name_pull_command,
    quote_answer,
    quote_comments,
    quote_edit,
    quote_git,
    quote_issue,
    quote_log,
    quote_review,
    quote_review_edit,
)

CONFLICTS_LISTED = 20
"""Greatest number of files of a conflict that are named; the others are counted."""


def _protocol_here(m: Material) -> str:
    signal = "How to signal is in your system prompt; the phase file is $PHASE_FILE."
    if not m.protocol_known:
        where = {"remote": m.remote, "branch": m.branch, "base": m.base}
        signal = explain_protocol(phase_file=m.phase_file, **where)
    forge = (
        "For issues and pull requests use sm, and no other program of the forge: sm issue "
        "list|show|comment, sm pr list|show|diff|checks|comment|merge, each with --project "
        f"{m.project}; --help says more."
    )
    return "\n\n".join((signal, forge, *m.channels))


def _start(m: Material) -> str:
    return f"""You work on issue {spell(m.issue.number)} of project {m.project}, in this git \
worktree, on branch {m.branch} (from {m.remote}/{m.base}).{_work_there(m)}

{quote_issue(m)}

Do what the issue asks, with tests, commit, and push to {m.remote} {m.branch}.

{_protocol_here(m)}"""


def _work_there(m: Material) -> str:
    """Tell what a branch already has from before anybody here worked on the issue."""
    if not (m.git.log or m.git.status):
        return ""
    return (
        " Somebody has worked on that branch before: look at git log, git diff and git status, and "
        f"go on from there.\n\n{_quote_work(m)}"
    )


def _quote_work(m: Material) -> str:
    stat = f"git diff {m.remote}/{m.base}...HEAD --stat"
    parts = (
        quote_git(m, stat, m.git.diff_stat, "nothing committed"),
        quote_git(m, "git log", m.git.log, "no commits yet"),
        quote_git(m, "git status --short", m.git.status, "clean"),
    )
    return "\n\n".join(parts)


def _recovery(m: Material) -> str:
    return _take_over(
        m, "a session before you worked on it" if m.earlier else "the session before you died"
    )


def _context_refused(m: Material) -> str:
    return _take_over(
        m,
        "the API refused the conversation of the session before you, so that was given up "
        "(an image or a file that is too large does that: do not read it whole)",
    )


def _take_over(m: Material, before: str) -> str:
    parts = [
        f"You take over issue {spell(m.issue.number)} of project {m.project}: {before}. "
        f"Its work is in this git worktree, on branch {m.branch}; git is the checkpoint. "
        "Look at git log, git diff and git status, then go on where it left off.",
        _moved(m),
        quote_issue(m),
        _quote_work(m),
        f"Last phase: {_phase(m)}",
    ]
    if m.phase is Phase.AWAITING_CI and m.check.log:
        parts.append(f"Last CI result ({m.check.state}):\n{quote_log(m, m.check)}")
    if m.phase is Phase.AWAITING_REVIEW and m.review:
        parts.append(f"Latest review:\n{quote_review(m, m.review)}")
    if m.discussion:
        parts.append(f"Comments on {name_pull(m)}:\n{quote_comments(m, m.discussion)}")
    if m.reason:
        parts.append(f"Its reason:\n{fence('reason', m.reason, m.nonce)}")
    parts.append(_waiting_note(m))
    parts.append(_protocol_here(m))
    return "\n\n".join(part for part in parts if part)


def _moved(m: Material) -> str:
    """Quote what is told of a move: it names files, and all with push rights could write it."""
    if not m.moved:
        return ""
    left = f"It ran on another host. What was left there:\n{fence('attempt', m.moved, m.nonce)}"
    if not m.document:
        return left
    return f"{left}\nBefore anything else, read its handoff document: {quotation.path(m.document)}"


def _phase(m: Material) -> str:
    if m.phase is Phase.UNKNOWN:
        return f"a line that is no phase:\n{fence('line', m.phase_text, m.nonce)}"
    return m.phase or "none written"


def _waiting_note(m: Material) -> str:
    waits = {
        Phase.AWAITING_CI: "the CI result",
        Phase.AWAITING_REVIEW: "the review",
        Phase.ESCALATE: "a person's answer",
    }
    if m.answered:
        return (
            "sm has answered that phase, but the agent that got the answer is gone. If all that it "
            "stands for is done, write it again: it is answered again."
        )
    if not (what := waits.get(m.phase)):
        return ""
    return (
        f"If everything up to that phase is done, do nothing: {what} reaches you as a message. "
        "If not, finish it and write the phase again."
    )


def _state_lost(m: Material) -> str:
    return (
        f"[sm] The phase file was lost and is empty again ({m.phase_file}). If you wait for CI, a "
        "review or a person, write your current phase to it once more; otherwise just go on."
    )


def _ci_passed(m: Material) -> str:
    return (
        f"[sm] CI passed for {_head(m)}.{_optional(m)} Next: if the work is complete, ask for a "
        "review:\n"
        f'  echo "{Phase.AWAITING_REVIEW}" > "$PHASE_FILE"'
    )


def _optional(m: Material) -> str:
    """Tell what has failed beside the checks that the forge requires."""
    if not m.check.optional:
        return ""
    return f" Failed, but not required: {', '.join(map(name, m.check.optional))}."


def _ci_none(m: Material) -> str:
    return (
        "[sm] CI passed (no CI is configured). Next: if the work is complete, ask for a review:\n"
        f'  echo "{Phase.AWAITING_REVIEW}" > "$PHASE_FILE"'
    )


def _ci_failed(m: Material) -> str:
    return (
        f"[sm] CI failed{_step(m.check)} at {_head(m)}.\n{quote_log(m, m.check)}\n"
        f"Mend it, push, and write {Phase.AWAITING_CI} again. "
        f"Attempts left after this one: {max(0, m.fixes_left - 1)}."
    )


def _step(check: Check) -> str:
    return f", step {name(check.step)}," if check.step else ""


def _head(m: Material) -> str:
    return name((m.pull.head if m.pull else "")[:10]) or m.branch


def _ci_timeout(m: Material) -> str:
    return f"[sm] CI timeout: no result for {_head(m)}. A person is being asked; wait."


def _review_changes(m: Material) -> str:
    review = quote_review(m, m.review) if m.review else ""
    return (
        f"[sm] Review of {name_pull(m)}: changes requested{_remarks(m.review)}.\n{review}\n"
        f"Address every point, push, and write {Phase.AWAITING_REVIEW} again."
    )


def _pull_comment(m: Material) -> str:
    return (
        f"[sm] New on {name_pull(m)}:\n{quote_comments(m, m.said)}\n"
        "If it asks for a change, make it, push, and write your phase again; to answer, use "
        f"sm pr comment {cite_pull(m)} --project {m.project}. Else go on as before."
    )


def _remarks(review: Review | None) -> str:
    count = len(review.comments) if review else 0
    return f" ({format_count(count, 'remark')})" if count else ""


def _approved(m: Material) -> str:
    return (
        f"[sm] Review: approved at {_head(m)}. Merge pull request {name_pull(m)}:\n"
        f"  {m.merge_command}\n"
        f'Then: echo "{Phase.DONE}" > "$PHASE_FILE"'
    )


def _merge_reminder(m: Material) -> str:
    return (
        f"[sm] Reminder: pull request {name_pull(m)} is approved and green but not merged:\n"
        f"  {m.merge_command}\n"
        f'Then: echo "{Phase.DONE}" > "$PHASE_FILE". If something keeps you from it, escalate.'
        f"{_why_unmerged(m)}"
    )


def _review_timeout(m: Material) -> str:
    return f"[sm] No review of pull request {name_pull(m)} yet, escalating; wait."


def _rebase(m: Material) -> str:
    return f"git fetch {m.remote} && git rebase {m.remote}/{m.base}"


def _push_again(m: Material) -> str:
    """Tell how to push what was rebased, without overwriting what others have pushed to the branch.

    With `--force-with-lease` alone git would overwrite it: the fetch before the rebase has seen it.
    """
    push = f"push by git push --force-with-lease --force-if-includes {m.remote} HEAD:{m.branch}"
    return (
        f"{push} (if git refuses, others have pushed to your branch: take their commits in by "
        f"git pull --rebase {m.remote} {m.branch}), and write {Phase.AWAITING_CI} again."
    )


def _conflict(m: Material) -> str:
    return (
        f"[sm] Pull request {name_pull(m)} conflicts with {m.base}{_conflicting(m)} "
        f"Rebase: {_rebase(m)}, solve the conflicts, {_push_again(m)}"
    )


def _conflicting(m: Material) -> str:
    """Say where it conflicts, as the end of a sentence."""
    if not m.conflicts:
        return "."
    shown = [one_line(file, SENTENCE_LIMIT) for file in m.conflicts[:CONFLICTS_LISTED]]
    more = len(m.conflicts) - len(shown)
    listed = "\n".join([*shown, *([f"… and {more} more"] if more else [])])
    return f" in:\n{fence('files', listed, m.nonce)}\n"


def _why_unmerged(m: Material) -> str:
    """Say that a conflict is in the way of the merge, if one is."""
    if not m.conflicts:
        return ""
    return f"\nIt conflicts with {m.base}{_conflicting(m)}Rebase: {_rebase(m)}, {_push_again(m)}"


def _behind(m: Material) -> str:
    return (
        f"[sm] Pull request {name_pull(m)} is approved and green, but the forge merges only what "
        f"has the last commit of {m.base}. Bring it up to date: {_rebase(m)}, {_push_again(m)}"
    )


def _queue_dropped(m: Material) -> str:
    said = fence("forge", m.pull.held if m.pull and m.pull.held else "(no reason)", m.nonce)
    return (
        f"[sm] The forge has removed pull request {name_pull(m)} from its merge queue, unmerged. "
        f"It says:\n{said}\nThe queue tests the work together with the base's last commits. Find "
        f"out what does not fit: {_rebase(m)}, mend it, {_push_again(m)} If the work is not to "
        f"blame, write {Phase.AWAITING_REVIEW} again."
    )


def _nothing_pushed(m: Material) -> str:
    return (
        f"[sm] The branch {m.branch} on {m.remote} lacks your work. Commit, "
        f"git push {m.remote} HEAD:{m.branch}, and write {Phase.AWAITING_CI} again."
    )


def _outrun(m: Material) -> str:
    theirs = f"{m.remote}/{m.branch}"
    return (
        f"[sm] The branch {m.branch} on {m.remote} has commits that your worktree lacks. An "
        "earlier attempt at this issue may have gone on for some seconds after you had taken it "
        f"over. See what they are: git fetch {m.remote} && git log -p HEAD..{theirs}. Have what is "
        f"right of them below your work: git pull --rebase {m.remote} {m.branch}, then git push "
        f"{m.remote} HEAD:{m.branch}, and write your phase again. Nothing is merged before."
    )


def _unknown_sentinel(m: Material) -> str:
    known = "\n".join(f"  {sentinel}" for sentinel in SENTINELS)
    return (
        "[sm] The phase file holds a line that is no phase of the protocol:\n"
        f"{fence('line', m.phase_text, m.nonce)}\nWrite one of these:\n{known}"
    )


def _not_merged(m: Material) -> str:
    how = f" To merge: {m.merge_command}" if m.pull and m.merge_command else ""
    return (
        f"[sm] PR not merged yet: the forge does not say that {m.branch} is merged.{how}\n"
        f"Write {Phase.DONE} only after the merge, {Phase.AWAITING_REVIEW} to ask for a review."
        f"{_why_unmerged(m)}"
    )


def _protocol_reminder(m: Material) -> str:
    return (
        "[sm] Your turn has ended without a new phase in the phase file, so sm does not know how "
        f"far you are. If a phase is complete, write its line to {m.phase_file}; if you need a "
        f"person, write {Phase.ESCALATE} with the reason; otherwise go on with the work.\n"
        f"{_protocol_here(m)}"
    )


def _resume(m: Material) -> str:
    return (
        "[sm] Your last turn was cut short by the API, which should answer again now. Go on where "
        "you left off."
    )


def tell_limit(m: Material) -> str:
    """Say what is used up, and when that ends by itself."""
    shown = one_line(m.allowance.shown, SENTENCE_LIMIT) if m.allowance else ""
    return f"{shown}; goes on at {m.limit_until}" if m.limit_until else shown


def _limit_near(m: Material) -> str:
    return (
        f"[sm] Most of what you may spend is used: {tell_limit(m)}. At the limit your turn is "
        "interrupted. Go on, and see to it that your work is committed and pushed before."
    )


def _limit_handoff(m: Material) -> str:
    return (
        f"[sm] Your turn was interrupted: {tell_limit(m)}. What is left is for one short turn. "
        "Create handoff document now\n"
        f"Write it to {quotation.path(m.document)}.{m.document_form}\n"
        "Create it as a new file, and do nothing else; when it is whole, end your turn. You go on "
        "once you may spend again."
    )


def _limit_over(m: Material) -> str:
    where = f" You have written down how far you were: {quotation.path(m.document)}."
    return (
        "[sm] You may go on: what kept you from spending is over."
        f"{where if m.document else ''} Go on where you were interrupted."
    )


def _first(m: Material) -> str:
    """Tell the session that is asked before people."""
    whose = name(f"{m.project}#{m.issue.number}")
    asked = fence("question", first_part(m.words or "(no words)", name_issue_command(m)), m.nonce)
    return (
        f"[sm] {whose} asks, and you are asked before people are. It works on issue "
        f"{spell(m.issue.number)} in {quotation.path(m.worktree)}, on branch {m.branch}:\n{asked}\n"
        f"If you know the answer: sm reply {m.project} {m.issue.number} TEXT\n"
        f"If you do not, do nothing: people are asked at {m.first_until}."
    )


def _reply(m: Material) -> str:
    who = f"The session {name(m.answered_by)}" if m.answered_by else "A person"
    return f"[sm] {who} answered:\n{quote_answer(m)}\nGo on with the work."


def _edited(m: Material) -> str:
    return (
        f"[sm] Issue {spell(m.issue.number)} was edited{_by(m.edited.editors)}. What has changed:\n"
        f"{quote_edit(m)}\n"
        f"All of it as it is now: {name_issue_command(m)}\n"
        f"If this changes what you have to do, do it, push, and write {Phase.AWAITING_CI} again. "
        "Otherwise go on, or wait on."
    )


def _by(editors: Iterable[str]) -> str:
    """Say who has edited it, as the end of a sentence: those that the forge names."""
    who = ", ".join(name(one) for one in editors if one)
    return f" by {who}" if who else ""


def _review_edited(m: Material) -> str:
    return (
        f"[sm] A review of {name_pull(m)} was edited{_by(m.edited_review.editors)}. What has "
        f"changed:\n{quote_review_edit(m)}\n"
        f"All of it as it is now: {name_pull_command(m)}\n"
        f"If this changes what you have to do, do it, push, and write {Phase.AWAITING_CI} again. "
        "Otherwise go on, or wait on."
    )


PROMPTS: dict[str, Callable[[Material], str]] = {
    "start": _start,
    "recovery": _recovery,
    "state-lost": _state_lost,
    "ci-passed": _ci_passed,
    "ci-none": _ci_none,
    "ci-failed": _ci_failed,
    "ci-timeout": _ci_timeout,
    "review-changes": _review_changes,
    "review-timeout": _review_timeout,
    "approved": _approved,
    "merge-reminder": _merge_reminder,
    "conflict": _conflict,
    "behind": _behind,
    "queue-dropped": _queue_dropped,
    "nothing-pushed": _nothing_pushed,
    "outrun": _outrun,
    "unknown-sentinel": _unknown_sentinel,
    "not-merged": _not_merged,
    "protocol-reminder": _protocol_reminder,
    "resume": _resume,
    CONTEXT_REFUSED: _context_refused,
    "limit-near": _limit_near,
    "limit-handoff": _limit_handoff,
    "limit-over": _limit_over,
    "first": _first,
    "reply": _reply,
    "edited": _edited,
    "review-edited": _review_edited,
    "pull-comment": _pull_comment,
}


def write_prompt(name: str, material: Material) -> str:
    """Return the whole text of the message `name` to an agent, made of its material."""
    return PROMPTS[name](material)
