"""What a person has to know of a session, told once for each event, wherever people look.

Of an issue's session that is the forge: a receipt makes the reaction matrix say it there. It asks
for no answer, as a question that gets none would end the session. The parent hears of any session,
and so does the machine's `notify_command`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sm.errors import SmError
from sm.history import Receipt
from sm.session import plan as plans
from sm.session import registry
from sm.session.registry import IssueSession, Session
from sm.session.targets import address
from sm.store import journal
from sm.store.crash import crash_point
from sm.workflow import notification
from sm.workflow.messages import tell_parent

if TYPE_CHECKING:
    from sm.workflow.policy import Policy

ROW = "told"


def note(session: Session, text: str, key: str, policy: Policy, *, parent: bool = True) -> None:
    """Let a person know; `text` goes on from the session's name, in one line.

    `key` stands for the event, so that it is told once. `parent` says whether the parent is told
    the same.
    """
    if any(known.plan == key for known in plans.receipts(session.dir)):
        return
    if parent:
        tell_parent(session, text, key)
    _run(session, text, policy.notify_command)
    crash_point("person:told")
    journal.record(session.root.journal, "person", session.name, text)
    remark = text[: plans.DETAIL_LIMIT]
    plans.add_receipt(session.dir, Receipt(time.time(), key, ROW, remark=remark))
    if isinstance(session, IssueSession):
        registry.poke(session.dir)  # the matrix has a row for it


def _run(session: Session, text: str, command: str) -> None:
    """Have a person's own command run; that it fails is noted, and holds nothing up."""
    if not command:
        return
    try:
        notification.start(session, f"{address(session)} {text}", command)
    except SmError as error:
        detail = f"notify_command: {error.message}"
        journal.record(session.root.journal, "problem", session.name, detail)
