"""Notices of sm to people: on the forge, in the vault, in a notification."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import structs

from sm.base.issue_id import spell
from sm.base.need import NeedKind
from sm.base.quotation import code
from sm.base.redact import redact
from sm.base.text import normalise, one_line
from sm.issues.rules.facts import CONTEXT_REFUSED, REMINDERS
from sm.issues.rules.material import Material, cite_pull, name_pull
from sm.issues.rules.needs import (
    CAUSES,
    KINDS,
    Case,
    Need,
    describe_need,
    find_approval_page,
    find_kind,
    name_waits,
)
from sm.issues.rules.prompts import tell_limit

LOG_LINES = 20
"""Last lines of a failing CI log that a question shows."""


def _question(name: str) -> Callable[[Material], str]:
    def text(m: Material) -> str:
        asked = describe_need(_case(name, m))
        parts = [
            f"**{asked.cause}** {_which(m)}.",
            f"Reason: {code(asked.detail)}" if asked.detail else "",
            _ci_log(m) if name == "ci-exhausted" else "",
            f"Branch `{m.branch}`, worktree {code(m.worktree)}.",
            _what_helps(m, asked),
        ]
        return "\n\n".join(part for part in parts if part)

    return text


def _case(row: str, m: Material) -> Case:
    return Case(
        row=row,
        address=f"{m.project}#{m.issue.number}",
        reason=m.reason,
        trouble=m.trouble,
        failure=m.failure,
        step=m.check.step,
        waits=name_waits(m.check),
        held=redact(m.pull.held) if m.pull else "",
        question=m.question,
        pull=m.pull.number if m.pull else 0,
        locked_out=m.locked_out,
        stuck=m.stuck,
        limit=tell_limit(m),
        turn=m.turn,
        raises=m.allowance.act if m.allowance else None,
        reviewed_at=m.reviewed_at,
        approved_at=find_approval_page(m.check),
    )


def _which(m: Material) -> str:
    pull = f", pull request {name_pull(m)}" if m.pull else ""
    return f"(issue {spell(m.issue.number)}{pull})"


def _what_helps(m: Material, asked: Need) -> str:
    if asked.by_answer:
        return f"To answer: {m.answer_help}."
    return (
        f"What helps is {asked.waits_for}: `{asked.command}`. "
        f"To tell the agent something: {m.answer_help}."
    )


def _ci_log(m: Material) -> str:
    """Return the end of what CI said, and where all of it is."""
    lines = redact(m.check.log).rstrip().splitlines()[-LOG_LINES:]
    if not lines:
        return ""
    where = f", all of it in {code(m.check.url)}" if m.check.url else ""
    return f"The end of CI's log{where}:\n\n{_indent(normalise(chr(10).join(lines)))}"


def _dialog(m: Material) -> str:
    parts = [
        f"**A dialog is open in the agent's terminal** (issue {spell(m.issue.number)}), and sm "
        "answers "
        "none. It asks:",
        _indent(m.dialog or "(see the terminal)"),
        f"To answer: `{m.attach_command}`, there. Nothing else reaches it, and until then nothing "
        "else reaches the agent.",
    ]
    return "\n\n".join(parts)


def _asked(m: Material) -> str:
    parts = [
        f"**The agent has ended its turn with a question** (issue {spell(m.issue.number)}):",
        _indent(normalise(m.question) or "(see the terminal)"),
        f"To answer: {m.answer_help}, or `{m.attach_command}`, there. It waits until then.",
    ]
    return "\n\n".join(parts)


def _watched(m: Material) -> str:
    return (
        f"**The agent does nothing** (issue {spell(m.issue.number)}), and sm does not end it, as a "
        f"person is attached to it.\n\nIf it is to go on: {m.answer_help}, or "
        f"a prompt in its terminal (`{m.attach_command}`). If not: "
        f"`sm kill {m.project} {m.issue.number}`."
    )


def _review_waits(m: Material) -> str:
    pull = cite_pull(m)
    review = f"sm review {m.project}#{pull}"
    by_sm = f"`{review} --approve`. To ask for changes: `{review} --request-changes -m TEXT`."
    return (
        f"**Pull request {name_pull(m)} waits for a review** (issue {spell(m.issue.number)}, "
        f"{code(_name_title(m))}). CI: {m.check.state}.\n\nTo read it: "
        f"`sm pr diff {m.project}#{pull}`. "
        f"To approve: {code(m.reviewed_at) if m.reviewed_at else by_sm}"
    )


def _ci_unapproved(m: Material) -> str:
    return (
        f"**CI waits for an approval** (issue {spell(m.issue.number)}, pull request "
        f"{name_pull(m)}): "
        f"{code(m.check.unapproved)} begins once a person has approved it.\n\n"
        f"To approve or decline it: {code(find_approval_page(m.check))}"
    )


def _silent(m: Material) -> str:
    return (
        f"**The agent ends its turns without a phase** (issue {spell(m.issue.number)}), and was "
        "reminded "
        f"{REMINDERS} times.\n\nTo tell it how to go on: {m.answer_help}, or "
        f"`{m.attach_command}`, there."
    )


def _name_title(m: Material) -> str:
    return _cut(redact(m.pull.title if m.pull else m.issue.title))


def _ci_broken(m: Material) -> str:
    parts = [
        f"**CI itself failed** (issue {spell(m.issue.number)}, pull request {name_pull(m)}): "
        "nothing "
        "is known of the commit." + (" It was run once more by itself." if m.repeated else ""),
        f"Reason: {code(m.check.step)}. Log: {code(m.check.url)}",
        f"When that is mended, have it run again: `sm ci rerun {m.project} {m.issue.number}`. "
        f"What it says then reaches the agent. To tell the agent something: {m.answer_help}.",
    ]
    return "\n\n".join(parts)


def _parked(m: Material) -> str:
    return (
        f"The session of issue {spell(m.issue.number)} is parked until {m.until}: "
        f"{code(m.failure)}. "
        "It goes on then by itself; nothing is to be done."
    )


def _context_refused(m: Material) -> str:
    return (
        f"The conversation of the agent of issue {spell(m.issue.number)} is given up: "
        f"{code(m.failure)}. "
        "Another one goes on from its worktree and branch; nothing is to be done."
    )


def _limit_wait(m: Material) -> str:
    return (
        f"The session of issue {spell(m.issue.number)} begins nothing new: {code(tell_limit(m))}. "
        "That is by itself; nothing is to be done."
    )


def _remark(m: Material) -> str:
    return (
        f"The agent of issue {spell(m.issue.number)}: {code(m.remark)}.\n\n"
        f"No answer is needed; to look at it: `{m.attach_command}`."
    )


def _reminder(m: Material) -> str:
    asked = describe_need(_case(m.asked_row, m))
    reason = f" Reason: {code(asked.detail)}." if asked.detail else ""
    return (
        f"Reminder: issue {spell(m.issue.number)} still waits for {asked.waits_for}. "
        f"{asked.cause}.{reason} {_what_helps(m, asked)}"
    )


ENDINGS = {
    "failed": "The agent gave up",
    "idle": "The agent went back to its prompt without signalling a phase",
    "crashed": "The agent died again and again",
    "unanswered": "No answer came in time",
}
"""Reasons why a session was ended and its issue blocked."""


def _ending(name: str) -> Callable[[Material], str]:
    def text(m: Material) -> str:
        ci = (
            f"{m.check.state}" + (f", step {code(m.check.step)}" if m.check.step else "")
            if m.check
            else ""
        )
        why = _why_ended(name, m)
        parts = [
            f"**{ENDINGS[name]}.** The issue is blocked.",
            f"Reason: {code(why)}" if why else "",
            f"Last phase: {code(m.phase_text or 'none')}. CI: {ci}.",
            f"The work is on branch `{m.branch}` and in the worktree {code(m.worktree)}.",
            f"To have it worked on again: `{m.unblock_command}`.",
            f"Last lines of the terminal:\n\n{_indent(m.tail)}" if m.tail else "",
        ]
        return "\n\n".join(part for part in parts if part)

    return text


def _why_ended(name: str, m: Material) -> str:
    return m.reason or (m.trouble if name == "crashed" else "")


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _stopped(m: Material) -> str:
    again = "" if m.row == "issue-closed" else f" To go on with it: `{m.unblock_command}`."
    return f"Session ended: {_why_stopped(m)}.{again}"


def _why_stopped(m: Material) -> str:
    """Say who has stopped it: `sm kill` is told from the label that it sets."""
    issue = f"issue {spell(m.issue.number)}"
    match m.row:
        case "issue-closed":
            return f"{issue} was closed"
        case "pull-closed":
            return f"the pull request of {issue} was closed unmerged"
        case _:
            return f"sm kill, which has blocked {issue}" if m.killed else f"{issue} was blocked"


NOTICES: dict[str, Callable[[Material], str]] = {
    **{name: _question(name) for name in CAUSES},
    **{name: _ending(name) for name in ENDINGS},
    "stopped": _stopped,
    "dialog": _dialog,
    "question": _asked,
    "watched": _watched,
    "ci-broken": _ci_broken,
    "ci-unapproved": _ci_unapproved,
    "review-waits": _review_waits,
    "silent": _silent,
    "parked": _parked,
    CONTEXT_REFUSED: _context_refused,
    "limit-wait": _limit_wait,
    "remark": _remark,
    "reminder": _reminder,
}
"""Notices to people on the forge and in the vault, by name."""


def write_notice(name: str, material: Material) -> str:
    """Return the whole text of the notice `name`, made of its material."""
    return NOTICES[name](material)


def find_answer(name: str, m: Material) -> tuple[NeedKind | None, str]:
    """Return the kind of need in the notice `name`, and the command that answers it.

    None and '' if nobody is needed.
    """
    row = m.asked_row if name == "reminder" else m.row
    if (kind := find_kind(row, m.locked_out)) is None:
        return None, ""
    return kind, m.unblock_command if name in ENDINGS else describe_need(_case(row, m)).command


def tell_need(name: str, m: Material) -> str:
    """Say in one sentence why a person is needed by the notice `name`; '' if nobody is."""
    if name in ENDINGS:
        return f"The issue is blocked: {_tell_end(name, m)}"
    if (row := m.asked_row if name == "reminder" else name) not in KINDS:
        return ""
    asked = describe_need(_case(row, m))
    return structs.replace(asked, detail=_cut(asked.detail)).tell(m.pull.name if m.pull else "")


SHORT_LIMIT = 300
"""Greatest number of characters of a reason in one line: a notification shows no more."""


def _ask_shortly(name: str, m: Material) -> str:
    asked = describe_need(_case(name, m))
    return f"needs a person: {_cut(asked.why)}. {asked.command}"


def _remind_shortly(m: Material) -> str:
    asked = describe_need(_case(m.asked_row, m))
    return f"still needs a person: {_cut(asked.why)}. {asked.command}"


def _end_shortly(name: str, m: Material) -> str:
    return f"is blocked: {_tell_end(name, m)}. {m.unblock_command}"


def _tell_end(name: str, m: Material) -> str:
    why = _why_ended(name, m)
    return f"{ENDINGS[name].lower()}{f' ({_cut(why)})' if why else ''}"


def _cut(words: str) -> str:
    return one_line(words, SHORT_LIMIT)


SHORTLY: dict[str, Callable[[Material], str]] = {
    **{name: partial(_ask_shortly, name) for name in CAUSES},
    **{name: partial(_end_shortly, name) for name in ENDINGS},
    "review-waits": lambda m: (
        f"pull request {name_pull(m)} waits for a review: {_name_title(m)}. "
        f"{describe_need(_case('review-waits', m)).command}"
    ),
    "silent": partial(_ask_shortly, "silent"),
    "ci-unapproved": lambda m: f"waits for an approval of CI: {find_approval_page(m.check)}",
    "stopped": lambda m: f"session ended: {_why_stopped(m)}",
    CONTEXT_REFUSED: lambda m: f"begins a new conversation: {_cut(m.failure)}",
    "parked": lambda m: f"is parked until {m.until}: {_cut(m.failure)}",
    "limit-wait": lambda m: f"begins nothing new: {_cut(tell_limit(m))}",
    "reminder": _remind_shortly,
}
"""Notices in one line; that of a remark is told as the remark is made."""


def write_short_notice(name: str, material: Material) -> str:
    """Return the notice `name` as a line to follow the session's name; '' for none."""
    return SHORTLY[name](material) if name in SHORTLY else ""
