"""Needs for a person, and what helps: alike for `sm status`, issue and reminders."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, structs

from sm.adapters.forge.model import Check, CheckState, PullState
from sm.base.act import ASK_DOCTOR, LOOK_AT_STATUS, Act, ActKind
from sm.base.issue_id import read_issue
from sm.base.need import NeedKind
from sm.base.phase import Phase
from sm.base.quotation import name
from sm.base.redact import redact
from sm.base.text import one_line
from sm.issues.rules.allowance import TurnAtLimit
from sm.issues.rules.facts import Facts
from sm.sessions.signs import PATIENCE_S

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
    "limit-asked": "A budget is used up",
    "limit-runs-on": "What may be spent is used up or not known, and interruptions do not help",
    "limit-held-long": "Nobody knows what may still be spent",
    "watched": "The agent does nothing, and sm does not end it, as a person is attached to it",
}
"""Reasons why sm asks a person, by the row of the matrix that asks."""

UNASKED_CAUSES = {
    "ci-unapproved": "CI waits for an approval",
    "review-waits": "The pull request waits for a review",
    "account": "Its account has a fault",
    "silent": "The agent ends its turns without a phase, and its reminders are used up",
    "failed": "The agent has given up",
    "draft": "Half a line stands unsent in its input line",
    "refused": "It is tried in vain",
    "unknown-screen": "Its terminal shows what sm does not know",
}
"""Reasons for a person whom sm does not ask. Such needs stand in the lists alone."""

KINDS = {
    "escalate": NeedKind.QUESTION,
    "question": NeedKind.QUESTION,
    "dialog": NeedKind.DIALOG,
    "watched": NeedKind.LIMITS,
    "turn-failed": NeedKind.LIMITS,
    "account": NeedKind.LIMITS,
    "parked-long": NeedKind.LIMITS,
    "limit-wait-long": NeedKind.LIMITS,
    "limit-asked": NeedKind.BUDGET,
    "limit-runs-on": NeedKind.BUDGET,
    "limit-held-long": NeedKind.BUDGET,
    "ci-exhausted": NeedKind.LIMITS,
    "review-exhausted": NeedKind.LIMITS,
    "ci-timeout": NeedKind.CI,
    "ci-late": NeedKind.CI,
    "ci-broken": NeedKind.CI,
    "ci-unapproved": NeedKind.CI,
    "silent": NeedKind.LIMITS,
    "review-waits": NeedKind.REVIEW,
    "review-timeout": NeedKind.REVIEW,
    "merge-stuck": NeedKind.MERGE,
    "merge-held": NeedKind.MERGE,
    "trouble": NeedKind.REFUSED,
    "failed": NeedKind.FAILED,
    "idle-prompt": NeedKind.FAILED,
    "recovery-exhausted": NeedKind.FAILED,
    "escalation-over": NeedKind.BLOCKED,
    "draft": NeedKind.DIALOG,
    "refused": NeedKind.REFUSED,
    "unknown-screen": NeedKind.DIALOG,
}
"""Kinds of needs, by the row of the matrix that asks or tells. Other rows need nobody.

`account` and the last three are no rows. `account`: all sessions of an account rest. `draft`: a
person has left a line in the terminal, and what is due waits for that. `refused`: each try of what
is due is refused. `unknown-screen`: what the terminal shows is none of what the profile knows.
"""

PASS_S = 10.0
"""Seconds within which a pass reacts to what an agent writes."""

OF_THE_PULL = (NeedKind.REVIEW, NeedKind.MERGE, NeedKind.CI)
"""Kinds of needs that are answered where the pull request is."""


class Case(Struct, frozen=True, omit_defaults=True):
    """Case of a question to a person. `address` is the session's, such as `shop#7`.

    A node sends it, and the machine at home makes the sentence and the command of it.

    `step` is the failed step of CI, `waits` the part of it that has not begun, `held` what keeps
    the forge from merging, `question` what the agent has asked, `pull` the number of the pull
    request, 0 for none. `locked_out`: the agent has no access to its API. `stuck`: sm cannot type
    to it. `unasked`: no person was asked yet, so there is nothing to reply to. `limit` says what is
    used up, `turn` what the agent does about it, and `raises` is the act that changes that.
    `reviewed_at` is the page of the pull request if a person can review it nowhere else, and
    `approved_at` that of CI which begins once a person has approved it there. `first` is the
    session that has been asked before people, until `first_until`, a time of day; '' for none.
    `account` is the account that has a fault, and `resting` the number of its sessions.
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
    unasked: bool = False
    limit: str = ""
    turn: TurnAtLimit | None = None
    raises: Act | None = None
    reviewed_at: str = ""
    approved_at: str = ""
    first: str = ""
    first_until: str = ""
    account: str = ""
    resting: int = 0


class Need(Struct, frozen=True):
    """Need for a person: `cause` in a few words, `detail` of this case or ''.

    `waits_for` says what helps, and `act` is how. `kind` is what a person is needed for, None for
    nothing. It is made from the `case`.
    """

    case: Case
    cause: str
    detail: str
    waits_for: str
    act: Act
    kind: NeedKind | None = None

    @property
    def command(self) -> str:
        """Command that helps, or the address of a page."""
        return self.act.command

    @property
    def by_answer(self) -> bool:
        """Whether an answer to the agent helps."""
        return self.act.kind is ActKind.REPLY

    @property
    def why(self) -> str:
        """Cause and detail in one piece."""
        return f"{self.cause} ({self.detail})" if self.detail else self.cause

    def tell(self, pull: str) -> str:
        """Say it in one sentence, with the name of the pull request if it is answered there."""
        number = pull if self.kind in OF_THE_PULL else ""
        details = ": ".join(filter(None, (number, self.detail)))
        return one_line(f"{self.cause} ({details})" if details else self.cause)


def describe_need(case: Case) -> Need:
    """Return what a person must know and do in this case."""
    detail = DETAILS.get(case.row, _reason)(case)
    waits_for, act = _way_of_limit(case) if case.row in OF_LIMITS else _way(case)
    cause = (CAUSES | UNASKED_CAUSES).get(case.row, "A person is asked")
    if case.row in OF_LIMITS and case.turn:
        cause = (
            f"{cause}: {case.turn}" if case.row == "limit-runs-on" else f"{cause}, and {case.turn}"
        )
    if case.account:
        cause = _tell_account(case)
    cause = ", and ".join(filter(None, (cause, _tell_first(case))))
    kind = find_kind(case.row, case.locked_out)
    return Need(case, cause, detail, waits_for, act, kind)


def _tell_account(case: Case) -> str:
    """Say which account has a fault, and how many of its sessions rest for that."""
    what = f"Login of {case.account}" if case.locked_out else case.account
    rest = "1 session rests" if case.resting == 1 else f"{case.resting} sessions rest"
    return f"{what}: {case.reason}, {rest} until that is over"


def _tell_first(case: Case) -> str:
    """Say which session has been asked before people, and until when."""
    if not case.first:
        return ""
    asked = f"{name(case.first)} has been asked"
    return f"{asked} until {case.first_until}" if case.first_until else asked


class PersonWait(Struct, frozen=True):
    """Wait of a session for a person, by the row that asks; `since` in seconds since 1970.

    `matter` stays the same while the session waits, whether a person was asked already or not.
    """

    row: str
    matter: str
    since: float


def find_waiting(facts: Facts) -> PersonWait | None:
    """Return what the session needs a person for now, asked or not; None for nothing.

    A dialog, a question at the end of a turn, and a merge that the forge keeps back are put to
    people only after a while. People who look before that see them all the same.
    """
    if _is_settled(facts):
        return None
    asked = facts.escalation
    if asked and not facts.reply:
        row, since = asked.row, asked.since or asked.at
    elif row := next((row for row, waits in UNASKED if waits(facts)), ""):
        since = 0.0
    else:
        return None
    return PersonWait(row, *_find_matter(facts, row, since))


def _is_settled(f: Facts) -> bool:
    """Whether the session is about to end, whatever it has asked."""
    return f.merged or f.blocked or not f.issue_open or f.pull is PullState.CLOSED


def _waits_for_review(f: Facts) -> bool:
    return f.awaits_review and f.review_waits


def _is_silent(f: Facts) -> bool:
    # A reminder that waits, such as for a person at the terminal, is as good as used up.
    waits = f.history.reminders > 0 and f.now >= f.ended_at + PATIENCE_S
    return f.fell_silent and (waits or f.unheeded)


def _asks_unheard(f: Facts) -> bool:
    """Whether it asks, and no pass has put that to people: it is paused, or nothing runs."""
    unasked = f.open and f.phase is Phase.ESCALATE and f.write not in f.history.escalations
    return unasked and not f.reply and not _is_fresh(f, f.written_at)


def _fails_unheard(f: Facts) -> bool:
    """Whether, unheard, its turn has failed for a reason that waiting does not mend."""
    failure = f.failure
    if failure is None or not failure.for_person or not f.matter:
        return False
    if f.matter in f.history.escalations:
        return False
    return not _is_fresh(f, failure.at)


def _is_fresh(f: Facts, at: float) -> bool:
    """Whether a pass may be about to react to it; a clock that was set back makes nothing fresh."""
    return 0 <= f.now - at < PASS_S


def _waits_for_merge(f: Facts) -> bool:
    # Just after CI or a review a forge may still work out whether it merges.
    known_at = max(f.written_at, f.check_at, f.review_at)
    return f.merge_held and not f.queued and f.now >= known_at + PATIENCE_S


UNASKED: tuple[tuple[str, Callable[[Facts], bool]], ...] = (
    # Its end may wait for hands at its terminal.
    ("failed", lambda f: f.open and f.phase is Phase.FAILED),
    ("dialog", lambda f: f.dialog_at is not None),
    ("question", lambda f: f.asks),
    ("escalate", _asks_unheard),
    ("turn-failed", _fails_unheard),
    ("silent", _is_silent),
    ("ci-unapproved", lambda f: f.ci_unapproved),
    ("review-waits", _waits_for_review),
    ("merge-held", _waits_for_merge),
)
"""Conditions that wait for a person before one is asked, by the row that asks later, if any."""


def _find_matter(facts: Facts, row: str, asked_at: float) -> tuple[str, float]:
    """Find the matter, and since when it waits; `asked_at` is 0 while nobody was asked."""
    match row:
        case "dialog":
            return facts.matter or facts.about, facts.dialog_at or asked_at
        case "question":
            return facts.matter or facts.about, facts.ended_at or asked_at
        case "silent":
            return f"silent:{facts.ended_at:.3f}", facts.ended_at
        case "review-waits" | "review-timeout" | "ci-unapproved":
            return f"{facts.write}:{facts.head}", max(facts.written_at, facts.check_at)
        case _:
            return facts.about, asked_at or max(facts.written_at, facts.check_at, facts.review_at)


OF_LOGIN = ("turn-failed", "account")
"""Rows that may be about a login."""


def find_kind(row: str, locked_out: bool = False) -> NeedKind | None:
    """Return what a person is needed for where the row `row` asks or tells; None for nothing."""
    return NeedKind.LOGIN if row in OF_LOGIN and locked_out else KINDS.get(row)


def name_waits(check: Check) -> str:
    """Say what of a check without a result has not even begun; '' if all of it has."""
    if check.state is not CheckState.PENDING:
        return ""
    if check.overdue:
        return check.step
    if check.unapproved:
        return f"{check.unapproved} begins once a person has approved it: {check.url}"
    if check.missing:
        return f"required, and not begun: {', '.join(check.missing)}"
    return "" if check.at else "no check has begun"


ADDRESS_LIMIT = 1000
"""Greatest number of characters of an address, as forges' answers are cut."""


def find_approval_page(check: Check) -> str:
    """Return where a person approves CI that has not begun; '' if it waits for nobody."""
    return one_line(redact(check.url), ADDRESS_LIMIT) if check.unapproved else ""


def _reason(case: Case) -> str:
    return case.reason


def _step(case: Case) -> str:
    return f"step {case.step}" if case.step else case.reason


DETAILS: dict[str, Callable[[Case], str]] = {
    # An earlier trouble is over. It must not replace the agent's own words.
    "trouble": lambda case: case.trouble,
    "turn-failed": lambda case: case.failure,
    "account": lambda case: f"“{case.failure}”" if case.failure else "",
    "ci-exhausted": _step,
    "ci-broken": _step,
    "ci-timeout": lambda case: case.waits or case.reason,
    "ci-late": lambda case: case.waits,
    "ci-unapproved": lambda case: case.waits,
    "merge-held": lambda case: case.held,
    "dialog": lambda _: "",
    "question": lambda case: case.question,
    "review-waits": lambda _: "",
    "silent": lambda _: "",
    "watched": lambda _: "",
    "draft": lambda case: case.trouble,
    "refused": lambda case: case.trouble,
    "limit-asked": lambda case: case.limit,
    "limit-runs-on": lambda case: case.limit,
    "limit-held-long": lambda case: case.limit,
}
"""Details that tell a case from others, by row; for any other row, what the agent has written."""


OF_LIMITS: dict[str, tuple[str, Act | None]] = {
    "limit-asked": ("a decision about its budget", LOOK_AT_STATUS),
    "limit-runs-on": ("a look at its terminal, or its end by sm kill", None),
    "limit-held-long": ("what may be spent to be known again", ASK_DOCTOR),
}
"""Help for a session that may spend nothing, and where to look if nothing raises the limit.

None: at its terminal.
"""


def _way_of_limit(case: Case) -> tuple[str, Act]:
    waits_for, look = OF_LIMITS[case.row]
    if look is None:
        return waits_for, Act(ActKind.ATTACH, address=case.address)
    return waits_for, case.raises or look


LOOK = ("a look at its terminal", ActKind.ATTACH)
ANSWER = ("an answer", ActKind.REPLY)

WAYS = {
    "dialog": ("a dialog in its terminal", ActKind.ATTACH),
    "draft": ("the person who has begun that line", ActKind.ATTACH),
    "unknown-screen": LOOK,
    "refused": ("a change of what refuses it", ActKind.RUN),
    "parked-long": ("its usage limit", ActKind.ATTACH),
    "account": ("its account", ActKind.ATTACH),
    "limit-wait-long": ("its usage limit", ActKind.ATTACH),
    "ci-broken": ("CI, which is broken", ActKind.RERUN),
    "silent": ("a word to the agent", ActKind.SEND),
}
"""Help, and the act for it, by row, whatever else is known of the case."""
UNASKED_WAYS = dict.fromkeys(("question", "escalate", "turn-failed"), ("an answer", ActKind.SEND))
"""Help as long as no person was asked: there is nothing to reply to."""


def _way(case: Case) -> tuple[str, Act]:
    project, _, issue = case.address.rpartition("#")
    of_pull = Act(ActKind.REVIEW, project, case.pull)
    match case.row:
        case "review-waits" | "review-timeout" if case.pull:
            page = Act(ActKind.VISIT, line=case.reviewed_at) if case.reviewed_at else None
            return "a review", page or of_pull
        case "ci-unapproved":
            page = Act(ActKind.VISIT, line=case.approved_at) if case.approved_at else None
            return "an approval of CI", page or LOOK_AT_STATUS
        case "merge-stuck" | "merge-held" if case.pull:
            return "the merge", structs.replace(of_pull, kind=ActKind.MERGE)
    waits_for, kind = _choose_way(case)
    if kind is ActKind.RUN:
        return waits_for, ASK_DOCTOR
    number = read_issue(issue) or 0  # none for a session without an issue
    return waits_for, Act(kind, project, number, address=case.address)


def _choose_way(case: Case) -> tuple[str, ActKind]:
    if case.row in OF_LOGIN and case.locked_out:
        return "a login or the like, in its terminal", ActKind.ATTACH
    if case.row in ("trouble", "failed") and case.stuck:
        return LOOK
    return WAYS.get(case.row) or (UNASKED_WAYS.get(case.row, LOOK) if case.unasked else ANSWER)
