"""Content of a question to a person, from what is known of the session."""

from __future__ import annotations

import re

from sm.adapters.forge.model import PullRequest
from sm.base.clock import format_time
from sm.base.issue_id import IssueId
from sm.base.phase import Phase
from sm.base.redact import redact
from sm.config.forges import LocalSettings
from sm.config.schema import ProjectSettings
from sm.issues import meters
from sm.issues.look.observe import Observation
from sm.issues.look.snapshot import Snapshot
from sm.issues.rules.facts import Facts
from sm.issues.rules.needs import (
    OF_LIMITS,
    Case,
    Need,
    describe_need,
    find_approval_page,
    name_waits,
)
from sm.issues.rules.spending import tell_turn
from sm.sessions import agent_state, turn
from sm.sessions.failure import FailureCause
from sm.sessions.history import StepVerb
from sm.sessions.plan import FAILED, read_receipts
from sm.sessions.session import IssueSession

ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Person's name on a forge. Anything else could be more than a name in a comment."""
STUCK = "stuck:"
"""Beginning of the key of a message that cannot be typed."""


def find_need(session: IssueSession, seen: Observation, row: str) -> Need:
    """Return why the matrix row `row` asks, and what helps."""
    first = find_first_asked(seen.facts)
    case = Case(
        row=row,
        address=session.address,
        reason=redact(seen.write.reason),
        trouble=describe_trouble(session, seen) if row == "trouble" else "",
        failure=describe_failed_turn(session, seen),
        step=seen.check.step,
        waits=name_waits(seen.check),
        held=redact(seen.pull.held) if seen.pull else "",
        question=read_asked(seen.facts),
        pull=seen.pull.number if seen.pull else 0,
        locked_out=is_locked_out(seen.facts),
        stuck=is_stuck(seen.facts),
        unasked=not seen.facts.escalated,
        limit=tell_limit(seen.facts),
        turn=tell_turn(seen.facts) if row in OF_LIMITS else None,
        raises=seen.facts.allowance.act if seen.facts.allowance else None,
        reviewed_at=find_review_page(session.project.settings, seen.pull),
        approved_at=find_approval_page(seen.check),
        first=first,
        first_until=format_time(seen.facts.first_until, seen.facts.now) if first else "",
    )
    return describe_need(case)


def find_review_page(project: ProjectSettings, pull: PullRequest | None) -> str:
    """Return the address if a person can review `pull` only there; '' if `sm review` can do it."""
    return project.forge.link_pull(pull.number) if pull and not project.forge.reviewer else ""


def find_first_asked(facts: Facts) -> str:
    """Return the session that has been asked before people, as long as these wait; '' for none."""
    asked = facts.consulted
    return asked.first if asked and facts.now < facts.first_until else ""


def read_words(session: IssueSession, seen: Observation) -> str:
    """Return all that the agent has said with its question: in the phase file, and last."""
    last = turn.read_last_words(session.dir, agent_state.read(session.dir))
    asks = seen.facts.phase is Phase.ESCALATE and seen.facts.open
    said = (seen.write.said, last) if asks else (last or read_asked(seen.facts),)
    return redact("\n\n".join(filter(None, dict.fromkeys(one.strip() for one in said))))


def tell_limit(facts: Facts) -> str:
    """Say what keeps the session from spending, and when that ends by itself; '' for nothing."""
    limit = facts.allowance
    return meters.describe(limit, facts.now) if limit and limit.holds else ""


def list_asked(project: ProjectSettings, seen: Snapshot | None, issue: IssueId) -> tuple[str, ...]:
    """Return the names of the people whom a question about `issue` calls, as last `seen`.

    First the names in the configuration; else, on a forge with accounts, the assignees, else the
    author if trusted. An app is told nothing by its name.
    """
    if project.escalation.mention:
        return project.escalation.mention
    found = seen.issue(issue) if seen else None
    if seen is None or found is None or _has_no_accounts(project):
        return ()
    author = found.author if seen.trust(project).includes(found.author) else ""
    if project.tracker:
        author = project.tracker.recall(author)
    return tuple(name for name in found.assignees or (author,) if ACCOUNT.fullmatch(name))


def _has_no_accounts(project: ProjectSettings) -> bool:
    return project.tracker is None and isinstance(project.forge, LocalSettings)


def read_asked(facts: Facts) -> str:
    """Return the question with which the agent has ended its turn; '' for none."""
    return redact(facts.signs.asks) if facts.signs else ""


def is_locked_out(facts: Facts) -> bool:
    """Say whether the agent's last turn failed because it has no access to its API."""
    return facts.failure is not None and facts.failure.fault is FailureCause.ACCESS


def is_stuck(facts: Facts) -> bool:
    """Say whether the last trouble is that sm cannot type to the agent."""
    troubles = facts.history.troubles
    return bool(troubles) and troubles[-1].startswith(STUCK)


def describe_failed_turn(session: IssueSession, seen: Observation) -> str:
    """Say why the agent's last turn failed, in our words and its own; '' if it did not."""
    failure = seen.facts.failure
    if failure is None:
        return ""
    said = turn.read_notice(session.dir)
    return f"{failure.fault} (“{said}”)" if said else str(failure.fault)


def describe_trouble(session: IssueSession, seen: Observation) -> str:
    """Say what was refused last, or why the restart of a crashed session failed."""
    if seen.facts.crashed:
        last = next(
            (r for r in reversed(read_receipts(session.dir)) if r.verb is StepVerb.RECOVER), None
        )
        return redact(last.detail) if last and last.detail.startswith(FAILED) else ""
    if not seen.facts.history.troubles:
        return ""
    key = seen.facts.history.troubles[-1]  # failed messages to a person are not among them
    told = [r.trouble for r in read_receipts(session.dir) if r.trouble and r.plan == key]
    return redact(told[-1]) if told else ""
