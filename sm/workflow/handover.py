"""Between the handoffs of the bridge and the sessions at work on their issues.

An entry becomes a message, or an answer, whose id is made of the entry, before the handoff notes
that it was handed over: whoever is killed in between, the next one does it again, to no effect.
"""

from __future__ import annotations

import contextlib
import secrets
from datetime import UTC, datetime
from pathlib import Path

from sm import bridgetexts
from sm.bridge import bindings, place
from sm.bridge.handoffs import bridge
from sm.bridge.records import Client, Entry, EntryType
from sm.errors import SmError
from sm.session import plan as plans
from sm.session import queue, registry
from sm.session.queue import Message
from sm.session.registry import IssueSession
from sm.store import journal, lock
from sm.store.crash import crash_point
from sm.store.paths import session_name
from sm.text import clean
from sm.workflow import answer, monitors, replies
from sm.workflow import host as hosts
from sm.workflow.context import Context
from sm.workflow.host import Host
from sm.workflow.messages import notice_id
from sm.workflow.observe import last_known
from sm.workflow.snapshot import Snapshot, last_snapshot


def hand_over(ctx: Context, session: IssueSession) -> None:
    """Give the session what the chat has said about its issue; its lock is held.

    Raises:
        SmError: the bridge cannot be used; what waits, waits.

    """
    if not place.is_there(ctx.config.bridge_database):
        return
    with bridge(ctx.config.bridge_database) as handoffs:
        for binding in bindings.of_issue(handoffs, session.project, session.issue):
            for entry in bindings.waiting(handoffs, binding):
                _hand(ctx, session, entry)
                crash_point("bridge:handed")
                bindings.handed(handoffs, binding, entry)


def ask(ctx: Context, session: IssueSession, text: str, key: str) -> None:
    """Put the session's question into the handoffs about its issue, once for each `key`.

    Raises:
        SmError: the bridge cannot be used.

    """
    if not place.is_there(ctx.config.bridge_database):
        return
    with bridge(ctx.config.bridge_database) as handoffs:
        for binding in bindings.of_issue(handoffs, session.project, session.issue):
            handoffs.add(binding.handoff_id, EntryType.QUESTION, text, Client.CODE, key=key)
            crash_point("bridge:asked")


def about(path: Path, session: IssueSession) -> tuple[str, ...]:
    """The ids of the handoffs about the session's issue, oldest first; `path`: the database."""
    try:
        if not place.is_there(path):
            return ()
        with bridge(path) as handoffs:
            found = bindings.of_issue(handoffs, session.project, session.issue)
    except SmError as error:
        journal.record_once(session.root.journal, "problem", session.name, error.message)
        return ()
    return tuple(binding.handoff_id for binding in found)


def wake(host: Host, project: str, issue: int) -> None:
    """Have whoever watches over the issue's session look at the bridge soon.

    Without a session there is nobody to wake: the next one finds what waits. What is in the way is
    noted only: the caller's entry is written, and would be written again if this failed.
    """
    try:
        session = _session(host, project, issue)
        if session is not None:
            monitors.ensure(session)
            registry.poke(session.dir)
    except SmError as error:
        name = session_name(project, issue)
        with contextlib.suppress(SmError):  # the disk may be full
            detail = f"not woken for the chat: {error.message}"
            journal.record_once(host.root.journal, "problem", name, detail)


def now(host: Host, project: str, issue: int) -> None:
    """Hand over what waits for the issue's session, if there is one.

    Raises:
        SmError: it cannot be done now; what waits, waits.

    """
    session = _session(host, project, issue)
    if session is None:
        return
    with lock.hold(session.dir.lock, timeout_s=120):
        if not session.dir.identity.exists():
            return  # it has ended meanwhile
        hand_over(hosts.context_of(session), session)
    registry.poke(session.dir)


def is_at_work(host: Host, project: str, issue: int) -> bool:
    """Whether there is a session for the issue.

    Raises:
        SmError: it cannot be told.

    """
    return _session(host, project, issue) is not None


def _session(host: Host, project: str, issue: int) -> IssueSession | None:
    name = session_name(project, issue)
    if not host.root.session(name).identity.exists():
        return None
    session = registry.of_issue(host.root, name)
    # The names of two projects may make the same name of a session.
    return session if session.project == project else None


def _hand(ctx: Context, session: IssueSession, entry: Entry) -> None:
    ident = notice_id(session, f"bridge:{entry.handoff_id}:{entry.seq}")
    content = clean(entry.content)
    if entry.type is EntryType.DECISION and _answers(ctx, session, entry, ident):
        answer.give(ctx, session, entry.from_client, content, key=ident)
    else:
        text = bridgetexts.entry(
            entry.handoff_id, entry.seq, entry.type, content, secrets.token_hex(4)
        )
        queue.put(session.dir, Message(id=ident, text=text))
    ctx.record("bridge", session.name, f"{entry.type} (entry {entry.seq} of {entry.handoff_id})")


def _answers(ctx: Context, session: IssueSession, entry: Entry, ident: str) -> bool:
    """Whether the decision is the answer to what a person is asked; `ident` is made of it."""
    if replies.find(session.dir, ident):
        return True  # kept already, but the forge could not be told of it
    plan = plans.pending(session.dir)
    if plan and plan.row == "reply":
        return False  # another answer waits to be typed, and then nothing is asked any more
    # Whether it asks does not depend on the forge, which may be out of reach.
    facts = last_known(ctx, session, last_snapshot(ctx.directory) or Snapshot(0.0, "")).facts
    if not facts.escalated or facts.dialog_at is not None:
        return False  # what was asked may be over with the dialog, and an answer to it be lost
    # Compared as texts: whatever else may stand there in place of a time is no error.
    asked_at = datetime.fromtimestamp(facts.asked_at, UTC).isoformat(timespec="milliseconds")
    return entry.created_at > asked_at
