"""Says why a person is needed and what helps: alike for `sm status`, issue and reminders."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from sm.adapters.forge.model import Check, CheckState
from sm.base.need import NeedKind

CAUSES = {
    "escalate": "The agent asks for a person",
    "ci-exhausted": "CI keeps failing: the attempts are used up",
    "ci-timeout": "CI has given no result in time",
    "ci-broken": "CI itself failed",
    "ci-late": "CI has given no result in time",
    "review-timeout": "The pull request was not reviewed in time",
    "review-exhausted": "The reviewer asks for changes again: the rounds are used up",
    "merge-stuck": "Approved and green, reminded, and still not merged",
    "merge-held": "Approved and green, and the forge does not merge it",
    "trouble": "Something that sm had to do was refused",
    "turn-failed": "The agent cannot go on",
    "dialog": "A dialog is open in the agent's terminal",
    "question": "The agent has ended its turn with a question",
    "watched": "The agent does nothing, and sm does not end it, as a person is attached to it",
}
"""Why sm asks a person, by the row of the matrix that asks."""

UNASKED_CAUSES = {"review-waits": "The pull request waits for a review"}
"""Why a person is needed whom sm does not ask: whoever reviews sees it on the forge."""

KINDS = {
    "escalate": NeedKind.QUESTION,
    "question": NeedKind.QUESTION,
    "dialog": NeedKind.DIALOG,
    "watched": NeedKind.LIMITS,
    "turn-failed": NeedKind.LIMITS,
    "parked-long": NeedKind.LIMITS,
    "ci-exhausted": NeedKind.LIMITS,
    "review-exhausted": NeedKind.LIMITS,
    "ci-timeout": NeedKind.CI,
    "ci-late": NeedKind.CI,
    "ci-broken": NeedKind.CI,
    "review-waits": NeedKind.REVIEW,
    "review-timeout": NeedKind.REVIEW,
    "merge-stuck": NeedKind.MERGE,
    "merge-held": NeedKind.MERGE,
    "trouble": NeedKind.REFUSED,
    "failed": NeedKind.FAILED,
    "idle-prompt": NeedKind.FAILED,
    "recovery-exhausted": NeedKind.FAILED,
    "escalation-over": NeedKind.BLOCKED,
}
"""What a person is needed for, by the row of the matrix that asks or tells; others need nobody."""


class Case(Struct, frozen=True):
    """What a question to a person is about. `address` is the session's, such as `shop#7`.

    `step` is the failed step of CI, `waits` what of it has not begun, `held` what keeps the forge
    from merging, `question` what the agent has asked, `pull` the number of the pull request, 0 for
    none. `locked_out`: the agent has no
    access to its API. `stuck`: sm cannot type to it.
    """

    row: str
    address: str
    reason: str = ""
    trouble: str = ""
    failure: str = ""
    step: str = ""
    waits: str = ""
    held: str = ""
    question: str = ""
    pull: int = 0
    locked_out: bool = False
    stuck: bool = False


class Need(Struct, frozen=True):
    """Why a person is needed: `cause` in a few words, `detail` of this case or ''.

    `waits_for` says what helps, and `command` how. `by_answer`: an answer to the agent helps.
    `kind` is what a person is needed for, None for nothing.
    """

    cause: str
    detail: str
    waits_for: str
    command: str
    by_answer: bool = False
    kind: NeedKind | None = None

    @property
    def why(self) -> str:
        """Cause and detail in one piece."""
        return f"{self.cause} ({self.detail})" if self.detail else self.cause


def describe_need(case: Case) -> Need:
    """Return what a person must know and do in this case."""
    detail = DETAILS.get(case.row, _reason)(case)
    waits_for, command = _way(case)
    by_answer = command.startswith("sm reply")
    cause = (CAUSES | UNASKED_CAUSES).get(case.row, "A person is asked")
    return Need(cause, detail, waits_for, command, by_answer, find_kind(case.row, case.locked_out))


def find_kind(row: str, locked_out: bool = False) -> NeedKind | None:
    """Return what a person is needed for where the row `row` asks or tells; None for nothing."""
    return NeedKind.LOGIN if row == "turn-failed" and locked_out else KINDS.get(row)


def name_waits(check: Check) -> str:
    """What of a check that has no result yet has not even begun; '' if all of it has."""
    if check.state is not CheckState.PENDING:
        return ""
    if check.overdue:
        return check.step
    if check.missing:
        return f"required, and not begun: {', '.join(check.missing)}"
    return "" if check.at else "no check has begun"


def _reason(case: Case) -> str:
    return case.reason


def _step(case: Case) -> str:
    return f"step {case.step}" if case.step else case.reason


DETAILS: dict[str, Callable[[Case], str]] = {
    # An earlier trouble is over. It must not replace the agent's own words.
    "trouble": lambda case: case.trouble,
    "turn-failed": lambda case: case.failure,
    "ci-exhausted": _step,
    "ci-broken": _step,
    "ci-timeout": lambda case: case.waits or case.reason,
    "ci-late": lambda case: case.waits,
    "merge-held": lambda case: case.held,
    "dialog": lambda _: "",
    "question": lambda case: case.question,
    "review-waits": lambda _: "",
    "watched": lambda _: "",
}
"""What tells this case from others; of any other row what the agent has written."""


def _way(case: Case) -> tuple[str, str]:
    project, _, issue = case.address.rpartition("#")
    attach = f"sm attach {project} {issue}"
    match case.row:
        case "dialog":
            return "a dialog in its terminal", attach
        case "parked-long":
            return "its usage limit", attach
        case "turn-failed" if case.locked_out:
            return "a login or the like, in its terminal", attach
        case "trouble" if case.stuck:
            return "a look at its terminal", attach
        case "ci-broken":
            return "CI, which is broken", f"sm ci rerun {project} {issue}"
        case "review-waits" | "review-timeout" if case.pull:
            return "a review", f"sm review {project}#{case.pull} --approve"
        case "merge-stuck" | "merge-held" if case.pull:
            return "the merge", f"sm pr merge {project}#{case.pull}"
        case _:
            return "an answer", f"sm reply {project} {issue} TEXT"
