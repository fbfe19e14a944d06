"""Tells people of an event in a session, once for each event, wherever people look.

For a session of an issue that includes the forge: a receipt makes the reaction matrix write the
event there. The comment asks for no answer, as a question that gets none would end the session. The
parent and every other channel hear of it at once, for any session.

People are told once of a fault of an account, which many sessions share.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from collections.abc import Iterator

from sm.base.clock import format_time
from sm.base.need import NeedKind
from sm.base.redact import redact
from sm.base.text import one_line
from sm.channels import people
from sm.channels.channel import Word
from sm.messages import screen_state
from sm.messages.notification import tell_parent
from sm.sessions import account_faults, agent_state, registry
from sm.sessions import plan as plans
from sm.sessions.account_fault import AccountCourse, AccountFault
from sm.sessions.failure import FailureCause
from sm.sessions.history import Receipt
from sm.sessions.sandboxes import SandboxError
from sm.sessions.session import Session
from sm.store import events, journal
from sm.store.failpoint import crash_point

ROW = "told"


@contextlib.contextmanager
def telling_of_sandbox(session: Session) -> Iterator[None]:
    """Let a person know, once for each reason, that no agent is started, as its sandbox is missing.

    Raises:
        SandboxError: that; it is raised again.

    """
    try:
        yield
    except SandboxError as error:
        why = hashlib.sha256(error.message.encode()).hexdigest()[:8]
        text = f"has no agent started: {one_line(redact(error.message))}"
        need = NeedKind.MACHINE
        note(session, text, f"sandbox:{why}", need=need, command="sm doctor", comment=False)
        raise


def note(
    session: Session,
    text: str,
    key: str,
    *,
    parent: bool = True,
    need: NeedKind | None = None,
    command: str = "",
    comment: bool = True,
) -> None:
    """Let a person know; `text` goes on from the session's name, in one line.

    `key` stands for the event, so that it is told once. `parent` says whether the parent is told
    the same, and `comment` whether the issue is. `need` is what a person is needed for, and
    `command` what helps.
    """
    if plans.has_receipt(session.dir, key):
        return
    if parent:
        tell_parent(session, text, key)
    people.alert(session, Word(key, text, text, need=need, command=command))
    crash_point("person:told")
    journal.record(session.root.journal, events.PersonTold(session=session.name, text=text))
    remark = text[: plans.DETAIL_LIMIT] if comment else ""
    plans.add_receipt(session.dir, Receipt(time.time(), key, ROW, remark=remark))
    if remark and session.has_matrix:
        registry.poke(session.dir)  # the matrix has a row for it


def tend_account(session: Session, remind_s: float) -> float:
    """Keep a fault of the account, tell people, and remind them.

    Returns when to look again, seconds since 1970.

    Raises:
        StateError: the fault cannot be kept.

    """
    told = screen_state.note_failed_turn(session, agent_state.read(session.dir))
    found = account_faults.update(session, told)
    if found is None or session.name not in found[1].sessions:
        return math.inf
    ident, known = found
    now = time.time()
    standing = account_faults.judge(session, known)
    again_at = standing.until if standing.way is AccountCourse.REST else math.inf
    if known.teller == session.name and not known.works:
        tries = known.probe in known.sessions and known.sessions[known.probe].tries_now
        look_s = account_faults.TRIED_S if tries else account_faults.LOOK_S
        again_at = min(again_at, now + look_s)
        if now < known.asks_at:
            again_at = min(again_at, known.asks_at)
        _tell_of_fault(session, ident, known, remind_s)
    return again_at


def _tell_of_fault(session: Session, ident: str, known: AccountFault, remind_s: float) -> None:
    """Tell people once for the account, and again if nobody comes."""
    now = time.time()
    if not known.is_told(now):
        return
    is_needed = known.needs_person(now)
    # People hear of a limit before they are needed.
    times = 1 if known.fault is FailureCause.ACCESS or not is_needed else 2
    if is_needed and remind_s:
        times += int(max(now - known.since, 0.0) // remind_s)
    if known.told >= times:
        return
    text = word_fault(known, now)
    kind = NeedKind.LOGIN if known.fault is FailureCause.ACCESS else NeedKind.LIMITS
    command = f"sm attach {session.address.replace('#', ' ')}"
    key = f"account:{ident}:{known.since:.3f}:{times}"
    note(session, f"{text}. {command}", key, parent=False, need=kind, command=command)
    account_faults.note_told(session.root, ident, times)


def word_fault(known: AccountFault, now: float) -> str:
    """Say what the session waits for, going on from its name."""
    what, until = known.name, f" until {format_time(known.until, now)}"
    if known.fault is FailureCause.ACCESS:
        what, until = f"the login of {known.name}", ""
    said = f" (“{known.notice}”)" if known.notice else ""
    return (
        f"waits for {what}{until}: {known.fault}{said}. "
        "All sessions of that account rest, and go on by themselves"
    )
