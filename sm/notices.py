"""What sm says to people: on the forge, in the vault, in a notification."""

from __future__ import annotations

from collections.abc import Callable

from sm.material import Material, code, pull_number

QUESTIONS = {
    "escalate": "The agent asks for a person",
    "ci-exhausted": "CI keeps failing: the attempts are used up",
    "ci-timeout": "CI has given no result in time",
    "review-timeout": "Nobody has reviewed the pull request in time",
    "review-exhausted": "The reviewer asks for changes again: the rounds are used up",
    "merge-stuck": "Approved and green, reminded, and still not merged",
    "trouble": "Something that sm had to do was refused",
    "turn-failed": "The agent cannot go on",
}
"""Why a person is asked."""


def _question(name: str) -> Callable[[Material], str]:
    def text(m: Material) -> str:
        # An earlier trouble is over: it must not stand before what the agent says itself.
        why = {"trouble": m.trouble, "turn-failed": m.failure}.get(name, m.reason)
        parts = [
            f"**{QUESTIONS[name]}** (issue #{m.issue.number}"
            + (f", pull request #{pull_number(m)})." if m.pull else ")."),
            f"Reason: {code(why)}" if why else "",
            f"Branch `{m.branch}`, worktree {code(m.worktree)}.",
            f"To answer: {m.answer_help}.",
        ]
        return "\n\n".join(part for part in parts if part)

    return text


def _dialog(m: Material) -> str:
    parts = [
        f"**A dialog is open in the agent's terminal** (issue #{m.issue.number}), and sm answers "
        "none. It asks:",
        _indent(m.dialog or "(see the terminal)"),
        f"To answer: `{m.attach_command}`, there. Nothing else reaches it, and until then nothing "
        "else reaches the agent.",
    ]
    return "\n\n".join(parts)


def _ci_broken(m: Material) -> str:
    parts = [
        f"**CI itself failed** (issue #{m.issue.number}, pull request #{pull_number(m)}): nothing "
        "is known of the commit. It was run once more by itself.",
        f"Reason: {code(m.check.step)}. Log: {code(m.check.url)}",
        f"When that is mended, have it run again: `sm ci rerun {m.project} {m.issue.number}`. "
        f"What it says then reaches the agent. To tell the agent something: {m.answer_help}.",
    ]
    return "\n\n".join(parts)


def _parked(m: Material) -> str:
    return (
        f"The session of issue #{m.issue.number} is parked until {m.until}: {code(m.failure)}. "
        "It goes on then by itself; nothing is to be done."
    )


def _remark(m: Material) -> str:
    return (
        f"The agent of issue #{m.issue.number}: {code(m.remark)}.\n\n"
        f"No answer is needed; to look at it: `{m.attach_command}`."
    )


def _reminder(m: Material) -> str:
    said = m.failure or m.reason
    reason = "a dialog in its terminal" if m.dialog else code(said) if said else ""
    why = f" Reason: {reason}" if reason else ""
    return f"Reminder: issue #{m.issue.number} still waits for an answer.{why} {m.answer_help}."


ENDINGS = {
    "failed": "The agent gave up",
    "idle": "The agent went back to its prompt without signalling a phase",
    "crashed": "The agent died again and again",
    "unanswered": "Nobody answered in time",
}
"""Why a session was ended and its issue blocked."""


def _ending(name: str) -> Callable[[Material], str]:
    def text(m: Material) -> str:
        ci = (
            f"{m.check.state}" + (f", step {code(m.check.step)}" if m.check.step else "")
            if m.check
            else ""
        )
        why = m.reason or (m.trouble if name == "crashed" else "")
        parts = [
            f"**{ENDINGS[name]}.** The issue is blocked until a person takes that label off.",
            f"Reason: {code(why)}" if why else "",
            f"Last phase: {code(m.phase_text or 'none')}. CI: {ci}.",
            f"The work is on branch `{m.branch}` and in the worktree {code(m.worktree)}.",
            f"Last lines of the terminal:\n\n{_indent(m.tail)}" if m.tail else "",
        ]
        return "\n\n".join(part for part in parts if part)

    return text


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _stopped(m: Material) -> str:
    return f"The session of issue #{m.issue.number} was ended, as a person settled it."


NOTICES: dict[str, Callable[[Material], str]] = {
    **{name: _question(name) for name in QUESTIONS},
    **{name: _ending(name) for name in ENDINGS},
    "stopped": _stopped,
    "dialog": _dialog,
    "ci-broken": _ci_broken,
    "parked": _parked,
    "remark": _remark,
    "reminder": _reminder,
}
"""What is said to people on the forge and in the vault."""


def to_person(name: str, material: Material) -> str:
    """The notice `name`."""
    return NOTICES[name](material)
