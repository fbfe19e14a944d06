"""Connects the threads of the bridge with the sessions on their issues.

An entry becomes a message or an answer, with an id made of the entry. Only then the thread notes
that it was handed over. If a process is killed in between, the next one repeats this without
effect.
"""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

from sm.base.errors import SmError
from sm.base.issue_id import IssueId
from sm.base.nonce import make_nonce
from sm.base.text import clean
from sm.issues import reply
from sm.issues.act.problem import REFUSALS
from sm.issues.look import answers
from sm.issues.look.observe import recall
from sm.issues.look.snapshot import Snapshot, last_snapshot
from sm.messages import queue
from sm.messages.notification import make_event_id
from sm.messages.queue import Message
from sm.plugins.chat.threads import agent_texts, bindings
from sm.plugins.chat.threads.handoffs import open_bridge
from sm.plugins.chat.threads.records import EntryType, HandoffEntry
from sm.sessions import monitors, registry
from sm.sessions import plan as plans
from sm.sessions.machine import Machine
from sm.sessions.session import IssueSession
from sm.store import events, journal, lock
from sm.store.failpoint import crash_point
from sm.store.paths import name_session


def hand_over(session: IssueSession) -> None:
    """Give the session the chat's entries about its issue. The caller holds its lock.

    Raises:
        SmError: the threads cannot be used; the entries wait.

    """
    with open_bridge(session.machine.settings.bridge_database) as handoffs:
        for binding in bindings.list_about_issue(handoffs, session.record.project, session.issue):
            for entry in bindings.list_waiting(handoffs, binding):
                _hand(session, entry)
                crash_point("bridge:handed")
                bindings.mark_handed(handoffs, binding, entry)


def wake(machine: Machine, project: str, issue: IssueId) -> None:
    """Make the monitor of the issue's session look at the bridge soon.

    Without a session there is nothing to wake: the next session finds the entries. A problem is
    only noted. The caller's entry is already written, and an error would make the caller write it
    again.
    """
    try:
        session = _session(machine, project, issue)
        if session is not None:
            monitors.ensure(session)
            registry.poke(session.dir)
    except SmError as error:
        name = name_session(project, issue)
        with contextlib.suppress(SmError):  # the disk may be full
            detail = f"not woken for the chat: {error.message}"
            journal.record_once(machine.root.journal, events.Problem(session=name, text=detail))


def hand_over_now(machine: Machine, project: str, issue: IssueId) -> None:
    """Hand over the waiting entries to the issue's session, if there is one.

    Raises:
        SmError: it is not possible now; the entries wait.

    """
    session = _session(machine, project, issue)
    if session is None:
        return
    with lock.hold(session.dir.lock, timeout_s=120):
        if not session.dir.identity.exists():
            return  # the session has ended meanwhile
        hand_over(session)
    registry.poke(session.dir)


def is_at_work(machine: Machine, project: str, issue: IssueId) -> bool:
    """Say whether there is a session for the issue.

    Raises:
        SmError: that cannot be known.

    """
    return _session(machine, project, issue) is not None


def _session(machine: Machine, project: str, issue: IssueId) -> IssueSession | None:
    name = name_session(project, issue)
    if not machine.root.session(name).identity.exists():
        return None
    session = registry.load_issue_session(machine.root, name)
    # Two project names may lead to the same session name.
    return session if session.record.project == project else None


def _hand(session: IssueSession, entry: HandoffEntry) -> None:
    ident = make_event_id(session, f"bridge:{entry.handoff_id}:{entry.seq}")
    content = clean(entry.content)
    if entry.type is EntryType.DECISION and _answers(session, entry, ident):
        _answer(session, entry.from_client, content, ident)
    else:
        text = agent_texts.write_entry(
            entry.handoff_id, entry.seq, entry.type, content, make_nonce(4)
        )
        queue.put(session.dir, Message(id=ident, text=text))
    told = events.FromChat(
        session=session.name, type=str(entry.type), entry=entry.seq, handoff=entry.handoff_id
    )
    session.project.record(told)


def _answer(session: IssueSession, author: str, text: str, ident: str) -> None:
    """Give the answer; an issue that takes no comment on it keeps no other entry waiting."""
    try:
        reply.give(session, author, text, key=ident)
    except reply.UntoldError as error:
        if not isinstance(error.__cause__, REFUSALS):
            raise
        session.project.record(events.Problem(session=session.name, text=error.message))


def _answers(session: IssueSession, entry: HandoffEntry, ident: str) -> bool:
    """Say whether the decision answers what a person is asked; `ident` is made of it."""
    if answers.find(session.dir, ident):
        return True  # kept already, but the forge could not take it
    plan = plans.read_pending(session.dir)
    if plan and plan.row == "reply":
        return False  # another answer waits to be typed, and then nothing is asked any more
    # Whether it asks does not depend on the forge, which may be out of reach.
    facts = recall(session, last_snapshot(session.project.directory) or Snapshot(0.0)).facts
    if not facts.escalated or facts.dialog_at is not None:
        return False  # the question may end with the dialog, and its answer would be lost
    # Compared as texts, so that any other content in place of a time is no error.
    asked_at = datetime.fromtimestamp(facts.asked_at, UTC).isoformat(timespec="milliseconds")
    return entry.created_at > asked_at
