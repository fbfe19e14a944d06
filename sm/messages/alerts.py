"""What a person has to know of a session, told once for each event, wherever people look.

Of an issue's session that is the forge: a receipt makes the reaction matrix say it there. It asks
for no answer, as a question that gets none would end the session. The parent hears of any session,
and so does the machine's `notify_command`, which is run for every word on the forge, too.
"""

from __future__ import annotations

import time

from sm.base.errors import SmError
from sm.channels.command import start
from sm.messages.telling import tell_parent
from sm.sessions import plan as plans
from sm.sessions import registry
from sm.sessions.history import Receipt
from sm.sessions.session import Session
from sm.store import events, journal
from sm.store.failpoint import crash_point

ROW = "told"
ALERTED = "alerted"
"""The row of a receipt that says that `notify_command` was run."""


def note(session: Session, text: str, key: str, command: str, *, parent: bool = True) -> None:
    """Let a person know; `text` goes on from the session's name, in one line.

    `key` stands for the event, so that it is told once. `command` is a person's own
    `notify_command`, '' for none. `parent` says whether the parent is told the same.
    """
    if plans.has_receipt(session.dir, key):
        return
    if parent:
        tell_parent(session, text, key)
    _run(session, text, command)
    crash_point("person:told")
    journal.record(session.root.journal, events.PersonTold(session=session.name, text=text))
    remark = text[: plans.DETAIL_LIMIT]
    plans.add_receipt(session.dir, Receipt(time.time(), key, ROW, remark=remark))
    if session.has_matrix:
        registry.poke(session.dir)  # the matrix has a row for it


def alert(session: Session, text: str, key: str, command: str) -> None:
    """Have a person's own `command` told what the forge is told, too, once for each `key`.

    Like `note`, it is run again only where this process dies before it could say that it was run.
    """
    key = f"{ALERTED}:{key}"
    if not command or plans.has_receipt(session.dir, key):
        return
    _run(session, text, command)
    plans.add_receipt(session.dir, Receipt(time.time(), key, ALERTED))


def _run(session: Session, text: str, command: str) -> None:
    """Have a person's own command run; that it fails is noted, and holds nothing up."""
    if not command:
        return
    try:
        start(session, f"{session.address} {text}", command)
    except SmError as error:
        detail = f"notify_command: {error.message}"
        journal.record(session.root.journal, events.Problem(session=session.name, text=detail))
