"""Need for a person, of a single session, as every list of needs shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from msgspec import Struct, structs

from sm.adapters.forge.model import PullRequest
from sm.adapters.forge.trust import find_last_verdict
from sm.base.act import LOOK_AT_STATUS, Act, ActKind, run
from sm.base.issue_id import IssueId
from sm.base.need import CUT, NeedKind
from sm.base.redact import redact
from sm.base.refusal import Refusal
from sm.base.text import normalise, one_line
from sm.config.schema import ProjectSettings
from sm.issues import meters
from sm.issues.act.brake import SPENDING
from sm.issues.act.problem import SessionProblem
from sm.issues.act.retry import REFUSED_FOR_S
from sm.issues.look import escalation
from sm.issues.look.observe import Observation
from sm.issues.rules.allowance import LimitStage, TurnAtLimit
from sm.issues.rules.needs import (
    CAUSES,
    KINDS,
    OF_THE_PULL,
    UNASKED_CAUSES,
    Case,
    Need,
    PersonWait,
    describe_need,
    find_waiting,
)
from sm.messages import unknown_screen
from sm.messages.follow_up import is_of_account
from sm.sessions import account_faults, agent_state, spending_hold, turn
from sm.sessions.account_fault import AccountFault
from sm.sessions.agent_state import State
from sm.sessions.failure import FailureCause
from sm.sessions.presence_rule import LEFT_S
from sm.sessions.session import AdHocSession, IssueSession, Session
from sm.store.paths import Root

NO_ACT = run("")
"""Act of a need until its answer is known."""


class OpenNeed(Struct, frozen=True, kw_only=True):
    """One thing that waits for a person.

    `key` stays the same as long as the need does, and no other need has it. `text` is one sentence.
    `act` answers the need, and `command` is that act in a shell, except for TEXT and AMOUNT.
    `since` is in seconds since 1970, 0 if unknown. `issue` is 0, and `session`, `title`, `project`
    and `link` are '', where there is none. `session` is an id, and `name` is what people call it.
    `whole` is all that the agent has said, with its lines and choices; '' where `text` has all of
    it. `merges`: sm merges it as soon as it is approved, as nothing else is missing. `verdict` is
    the id of the last known verdict on the pull request, '' for none. `case` is what `text` and
    `act` are made from, None if unknown.
    """

    key: str
    kind: NeedKind
    project: str = ""
    issue: IssueId = 0
    session: str = ""
    name: str = ""
    title: str = ""
    since: float = 0.0
    text: str
    command: str = ""
    link: str = ""
    whole: str = ""
    merges: bool = False
    verdict: str = ""
    case: Case | None = None
    act: Act = NO_ACT

    def __post_init__(self) -> None:
        """Spell the act: the command never says anything else."""
        structs.force_setattr(self, "command", self.act.command)


def find_need(session: IssueSession, seen: Observation) -> tuple[PersonWait, Need] | None:
    """Find what the session needs a person for, by what was `seen` of it; None for nothing."""
    waiting = find_waiting(seen.facts)
    return (waiting, escalation.find_need(session, seen, waiting.row)) if waiting else None


def make_need(
    session: IssueSession, seen: Observation, waiting: PersonWait, need: Need
) -> OpenNeed | None:
    """Make the entry of the list from what `find_need` has found; None if it is of no kind."""
    if need.kind is None:
        return None
    entry = structs.replace(
        _begin(session, waiting, need.kind),
        whole=quote(session, waiting.row, seen.write.said, need.detail),
        merges=need.kind is NeedKind.REVIEW and seen.facts.merges_when_approved,
    )
    return put_into_words(entry, need, session.project.settings, seen.pull)


def _begin(session: IssueSession, waiting: PersonWait, kind: NeedKind) -> OpenNeed:
    """Return the entry without its words."""
    return OpenNeed(
        key=f"{session.name}:{kind}:{waiting.matter}",
        kind=kind,
        project=session.project_name,
        issue=session.issue,
        session=session.name,
        name=session.address,
        title=one_line(session.record.title),
        since=waiting.since,
        text="",
        act=NO_ACT,
    )


def put_into_words(
    entry: OpenNeed, need: Need, project: ProjectSettings, pull: PullRequest | None
) -> OpenNeed:
    """Return the entry with the words that a person reads, by what is known here of its `pull`."""
    text = need.tell(pull.name if pull else "")
    told = structs.replace(
        entry,
        text=f"{text} {CUT}" if entry.whole else text,
        act=need.act,
        link=project.link_issue(entry.issue),
        case=need.case,
    )
    if need.kind not in OF_THE_PULL or pull is None:
        return told
    last = find_last_verdict(pull.reviews)
    return structs.replace(
        told, link=project.forge.link_pull(pull.number), verdict=last.id if last else ""
    )


def find_forgotten_draft(session: IssueSession, problem: SessionProblem | None) -> OpenNeed | None:
    """Find a need about a draft in the session's input line that nobody may remember any more."""
    if problem is None or problem.refusal is not Refusal.DRAFT:
        return None
    try:
        since = session.dir.problem.stat().st_mtime
    except FileNotFoundError:  # it has just been settled
        return None
    if time.time() < since + LEFT_S:
        return None
    return _make_need_of_problem(session, "draft", problem, since)


def find_refused(
    session: IssueSession, problem: SessionProblem | None, *, begun: bool
) -> OpenNeed | None:
    """Find what a person has to change before the session can begin, or go on once it has begun.

    A forge may learn only a moment later what was pushed, so a session that goes on gets that time.
    """
    if problem is None or not problem.lasts:
        return None
    try:
        since = session.dir.problem.stat().st_mtime
    except FileNotFoundError:  # it has just been settled
        return None
    if begun and time.time() < since + REFUSED_FOR_S:
        return None
    return _make_need_of_problem(session, "refused", problem, since)


def find_unknown_screen(session: IssueSession) -> OpenNeed | None:
    """Find a need to look at the terminal, as sm does not know what it shows."""
    found = unknown_screen.find(session)
    if found is None:
        return None
    case = Case("unknown-screen", session.address, reason=found.text)
    return _make_need_of_case(session, case, found.since)


def _make_need_of_problem(
    session: IssueSession, row: str, problem: SessionProblem, since: float
) -> OpenNeed:
    return _make_need_of_case(
        session, Case(row, session.address, trouble=redact(problem.text)), since
    )


def _make_need_of_case(session: IssueSession, case: Case, since: float) -> OpenNeed:
    entry = _begin(session, PersonWait(case.row, f"{since:.0f}", since), KINDS[case.row])
    return put_into_words(entry, describe_need(case), session.project.settings, None)


# Accounts


def list_account_needs(root: Root) -> Iterator[OpenNeed]:
    """Yield what the accounts of all sessions need a person for: one need for each account."""
    for ident, known in account_faults.list_faults(root):
        if known.needs_person(time.time()):
            yield _make_account_need(ident, known)


def find_need_of_account(session: IssueSession) -> OpenNeed | None:
    """Find what the session's account needs a person for, at one of its sessions; None: nothing."""
    found = account_faults.read_fault(session)
    if found is None or found[1].teller != session.name or not found[1].needs_person(time.time()):
        return None
    return _make_account_need(*found)


def _make_account_need(ident: str, known: AccountFault) -> OpenNeed:
    case = Case(
        "account",
        known.sessions[known.teller].address,
        reason=str(known.fault),
        failure=known.notice,
        account=known.name,
        resting=len(known.sessions),
        locked_out=known.fault is FailureCause.ACCESS,
    )
    need = describe_need(case)
    return OpenNeed(
        key=f"account:{ident}:{known.since:.3f}",
        kind=need.kind or NeedKind.LOGIN,
        since=known.since,
        text=need.tell(""),
        act=need.act,
        case=case,
    )


# Sessions that work on no issue


def make_own_need(session: AdHocSession, state: str) -> OpenNeed | None:
    """Return what a session of `sm new` needs a person for; `state` is what its agent is doing.

    If an agent began the session, its question is its parent's to answer.
    """
    found = _find_own_limit(session, state) or _find_in_terminal(session, state)
    return found or _find_own_unknown_screen(session)


def _find_own_limit(session: AdHocSession, state: str) -> OpenNeed | None:
    """Find a limit of the session that is used up or unknown, and that only a person can change."""
    held = spending_hold.read(session.dir)
    limit = meters.read_allowance(session) if held else None
    if held is None or limit is None or limit.until is not None:
        return None
    if not limit.stops(time.time(), spending_hold.find_stage_time(session.dir)):
        return None
    cause = CAUSES["limit-held-long" if limit.stage is LimitStage.BLIND else "limit-asked"]
    turn_goes = TurnAtLimit.IS_STOPPED if state in SPENDING else TurnAtLimit.RESTS
    return OpenNeed(
        key=f"{session.name}:{NeedKind.BUDGET}:{limit.matter}",
        kind=NeedKind.BUDGET,
        session=session.name,
        name=session.address,
        since=held.since,
        text=one_line(f"{cause}, and {turn_goes} ({limit.shown})"),
        act=limit.act or LOOK_AT_STATUS,
    )


def _find_in_terminal(session: AdHocSession, state: str) -> OpenNeed | None:
    signs = turn.read(session.dir, agent_state.read(session.dir)) if state in LOOKED_INTO else None
    if signs is None:
        return None
    whole = ""
    if signs.dialog_at is not None:
        whole = quote(session, "dialog", "", "")
        found = NeedKind.DIALOG, signs.dialog_at, CAUSES["dialog"], ActKind.ATTACH
    elif signs.failure and signs.failure.for_person and not is_of_account(session, signs.failure):
        why = f"{CAUSES['turn-failed']} ({signs.failure.fault})"
        kind = NeedKind.LOGIN if signs.failure.fault is FailureCause.ACCESS else NeedKind.LIMITS
        found = kind, signs.failure.at, why, ActKind.ATTACH
    elif signs.asks and not session.record.parent:
        asked = f"{CAUSES['question']} ({redact(signs.asks)})"
        whole = quote(session, "question", "", redact(signs.asks))
        found = NeedKind.QUESTION, signs.ended_at or 0.0, asked, ActKind.SEND
    else:
        return None
    kind, since, text, answer = found
    return OpenNeed(
        key=f"{session.name}:{kind}:{since:.3f}",
        kind=kind,
        session=session.name,
        name=session.address,
        since=since,
        text=one_line(f"{text} {CUT}" if whole else text),
        act=Act(answer, session=session.name, address=session.address),
        whole=whole,
    )


def _find_own_unknown_screen(session: AdHocSession) -> OpenNeed | None:
    found = None if session.has_ended else unknown_screen.find(session)
    if found is None:
        return None
    return OpenNeed(
        key=f"{session.name}:{NeedKind.DIALOG}:{found.since:.0f}",
        kind=NeedKind.DIALOG,
        session=session.name,
        name=session.address,
        since=found.since,
        text=one_line(f"{UNASKED_CAUSES['unknown-screen']} ({found.text})"),
        act=Act(ActKind.ATTACH, session=session.name, address=session.address),
    )


LOOKED_INTO = (State.IDLE, State.DIALOG, State.LIMITED)
"""States of an agent that may need a person."""


# Quotation of all that an agent has said: a line of a list has room for its end alone

QUOTATION_LIMIT = 8000
"""Longest quotation, in characters. Of a longer one the end is kept: question and choices."""


def bound_quotation(text: str) -> str:
    """Return `text` as a person may see it: without secrets, harmless to a terminal, bounded."""
    clean = normalise(redact(text[-4 * QUOTATION_LIMIT :]))
    return clean if len(clean) <= QUOTATION_LIMIT else f"… {clean[-QUOTATION_LIMIT:]}"


def quote(session: Session, row: str, reason: str, shown: str) -> str:
    """Return all that the agent has said where `row` asks; '' if `shown` is all of it.

    `reason` is what the agent has written into its phase file.
    """
    parts = [bound_quotation(one) for one in SOURCES.get(row, _quote_nothing)(session, reason)]
    whole = bound_quotation("\n\n".join(filter(None, dict.fromkeys(parts))))
    return "" if whole.split() == shown.split() else whole


def _quote_nothing(_session: Session, _reason: str) -> tuple[str, ...]:
    return ()


def _quote_last(session: Session, _reason: str) -> tuple[str, ...]:
    return (turn.read_last_words(session.dir, agent_state.read(session.dir)),)


def _quote_both(session: Session, reason: str) -> tuple[str, ...]:
    return (reason, *_quote_last(session, reason))


def _quote_dialog(session: Session, _reason: str) -> tuple[str, ...]:
    return (turn.read_dialog(session.dir, agent_state.read(session.dir)),)


SOURCES: dict[str, Callable[[Session, str], tuple[str, ...]]] = {
    "question": _quote_last,
    "silent": _quote_last,
    "escalate": _quote_both,
    "dialog": _quote_dialog,
}
"""Sources of the agent's words, by the row that asks; other rows are told in our own words."""
