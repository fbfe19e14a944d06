"""Tells people of an event in a session, once for each event, wherever people look.

For a session of an issue that includes the forge: a receipt makes the reaction matrix write the
event there. The comment asks for no answer, as a question that gets none would end the session. The
parent and every other channel hear of it at once, for any session.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator

from sm.base.need import NeedKind
from sm.base.redact import redact
from sm.base.text import one_line
from sm.channels import people
from sm.channels.channel import Word
from sm.messages.notification import tell_parent
from sm.sessions import plan as plans
from sm.sessions import registry
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
