"""Rows of the reaction matrix, and the texts that they send, in a few words for a table."""

from __future__ import annotations

from collections.abc import Mapping

from sm.config import duration

ROWS: dict[str, str] = {
    "merge-seen": "merged",
    "merged": "its session can end",
    "merged-early": "its session can end",
    "issue-closed": "the issue was closed",
    "pull-closed": "the pull request was closed",
    "overtaken": "another attempt has the issue",
    "given-back": "the issue goes back",
    "blocked": "the issue was blocked",
    "failed": "the agent gave up",
    "idle-prompt": "the agent never began",
    "recover": "the agent is gone",
    "recovery-exhausted": "the agent died too often",
    "reply": "an answer came",
    "trouble": "a step was refused",
    "first-escalate": "the agent asks for a person",
    "first-question": "its turn ended with a question",
    "escalate": "the agent asks for a person",
    "escalation-over": "no answer in time",
    "remind": "a reminder is due",
    "remark": "something to know",
    "dialog": "a dialog is open",
    "question": "its turn ended with a question",
    "watched": "it does nothing, and a person is attached",
    "context-refused": "the API refuses the conversation",
    "turn-failed": "the turn failed",
    "login-again": "it alone has no access",
    "park": "the agent has to wait",
    "parked-long": "the agent has to wait for long",
    "resume": "the agent can go on",
    "limit-runs-on": "interruptions do not help",
    "limit-stop": "over a limit, or it is not known",
    "limit-handoff": "its turn was cut off",
    "limit-asked": "over a limit",
    "limit-held": "nothing may be spent now",
    "limit-wait-long": "nothing may be spent for long",
    "limit-held-long": "nobody knows what may be spent",
    "limit-near": "near a limit",
    "limit-over": "it may spend again",
    "limit-gone": "it may spend again",
    "edited": "the issue was edited",
    "review-edited": "a review was edited",
    "pull-comment": "a comment on the pull request",
    "phase-lost": "the phase file is gone",
    "unknown-sentinel": "unknown phase",
    "merge-held": "approved, held by the forge",
    "not-merged": "not merged yet",
    "nothing-pushed": "nothing was pushed",
    "outrun": "an earlier attempt has pushed to its branch",
    "open-pull": "the branch is pushed",
    "ci-passed": "CI passed",
    "ci-none": "no CI",
    "ci-failed": "CI failed",
    "ci-exhausted": "CI keeps failing",
    "ci-rerun": "CI itself failed, it runs again",
    "ci-broken": "CI itself failed",
    "ci-timeout": "no result of CI in time",
    "ci-late": "no result of CI in time",
    "ci-unapproved": "CI waits for an approval",
    "review-changes": "changes requested",
    "review-exhausted": "changes requested again",
    "conflict": "conflicts with its base",
    "review-red": "CI failed",
    "behind": "its base has moved on",
    "queue-dropped": "the merge queue dropped it",
    "approved": "approved",
    "approved-merge": "approved",
    "review-waits": "no review yet",
    "review-timeout": "no review in time",
    "merge-reminder": "approved, not merged yet",
    "merge-stuck": "approved, still not merged",
    "protocol-reminder": "its turn ended without a phase",
    "silent": "its turns end without a phase",
}
"""Words for every row of the matrix that does something."""

TEXTS: dict[str, str] = {
    "first": "a session is asked before people",
    "crashed": "the agent died too often",
    "idle": "the agent never began",
    "limit-wait": "nothing may be spent for long",
    "parked": "the agent has to wait for long",
    "recovery": "the agent is gone",
    "reminder": "no answer yet",
    "state-lost": "the phase file is gone",
    "stopped": "the session is stopped",
    "unanswered": "no answer in time",
}
"""Words for texts to agents and people that are not called as their row."""


def put_in_words(name: str) -> str:
    """Put the row or the text of that name in words; another version's name stays as it is."""
    return ROWS.get(name) or TEXTS.get(name) or name


def word_limit(row: str, limits: Mapping[str, float]) -> str:
    """Name the limits that the row is about, with these values; '' if none, or unknown."""
    from sm.issues.rules.matrix import BY_NAME  # most words are made without it

    if not limits or row not in BY_NAME:
        return ""
    shown = {
        name: duration.show(value) if name.endswith("_s") else f"{value:g}"
        for name, value in limits.items()
    }
    try:
        return BY_NAME[row].limit.format_map(shown)
    except KeyError:
        return ""  # another version's row is about other limits
