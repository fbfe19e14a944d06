"""What a person has to know of a session, told once for each event, wherever people look.

Of an issue's session that is the forge: a receipt makes the reaction matrix say it there. The
parent hears of any, and so does the machine's `notify_command`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sm.adapters.process import run
from sm.errors import SmError
from sm.history import Receipt
from sm.session import plan as plans
from sm.session import registry
from sm.session.registry import IssueSession, Session
from sm.session.targets import address
from sm.store import journal
from sm.store.crash import crash_point
from sm.workflow.messages import tell_parent

if TYPE_CHECKING:
    from sm.workflow.policy import Policy

COMMAND_S = 10.0
"""So long a `notify_command` may take: nobody else is served meanwhile."""
ROW = "told"


def tell(session: Session, text: str, key: str, policy: Policy, *, parent: bool = True) -> None:
    """Ask a person to see to the session; `text` goes on from its name, in one line.

    `key` stands for the event, so that it is told once. An issue waits for an answer then: for
    what needs none there is `note`. `parent` says whether the parent is told the same.
    """
    receipt = Receipt(time.time(), key, ROW, trouble=text[: plans.DETAIL_LIMIT])
    _say(session, text, receipt, policy, parent=parent)


def note(session: Session, text: str, key: str, policy: Policy, *, parent: bool = True) -> None:
    """Let a person know of something that needs no answer; otherwise as `tell`."""
    receipt = Receipt(time.time(), key, ROW, remark=text[: plans.DETAIL_LIMIT])
    _say(session, text, receipt, policy, parent=parent)


def _say(session: Session, text: str, receipt: Receipt, policy: Policy, *, parent: bool) -> None:
    if any(known.plan == receipt.plan for known in plans.receipts(session.dir)):
        return
    if parent:
        tell_parent(session, text, receipt.plan)
    _run(session, text, policy.notify_command)
    crash_point("person:told")
    journal.record(session.root.journal, "person", session.name, text)
    plans.add_receipt(session.dir, receipt)
    if isinstance(session, IssueSession):
        registry.poke(session.dir)  # the matrix has a row for it


def _run(session: Session, text: str, command: str) -> None:
    """Run a person's own command; that it fails is noted, and holds nothing up."""
    if not command:
        return
    words = f"{address(session)} {text}\n".encode()
    try:
        run("/bin/sh", "-c", command, stdin=words, timeout_s=COMMAND_S)
    except SmError as error:
        detail = f"notify_command: {error.message}"
        journal.record(session.root.journal, "problem", session.name, detail)
