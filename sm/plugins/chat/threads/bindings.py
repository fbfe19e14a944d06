"""Binds threads to issues: what the chat writes goes once to the agent that works on the issue."""

from __future__ import annotations

from msgspec import Struct

from sm.base.issue_id import IssueId
from sm.plugins.chat.threads.handoffs import HandoffBridge
from sm.plugins.chat.threads.records import EntryType, HandoffClient, HandoffEntry
from sm.store.sqlite import transaction

OF_HANDOFF = """
SELECT handoff_id, project, issue, handed_seq FROM handoff_bindings WHERE handoff_id = ?
"""
OF_ISSUE = """
SELECT handoff_id, b.project, issue, handed_seq
FROM handoff_bindings AS b JOIN handoffs ON id = handoff_id
WHERE b.project = ? AND issue = ? AND coalesce(status, 'active') = 'active' ORDER BY created_at, id
"""
BOUND = """
INSERT INTO handoff_bindings (handoff_id, project, issue) VALUES (?, ?, ?)
ON CONFLICT (handoff_id) DO UPDATE
SET project = excluded.project, issue = excluded.issue, handed_seq = 0
WHERE (project, issue) <> (excluded.project, excluded.issue)
"""
HANDED = """
UPDATE handoff_bindings SET handed_seq = max(handed_seq, ?)
WHERE (handoff_id, project, issue) = (?, ?, ?)
"""

FROM_CHAT = (EntryType.TASK, EntryType.DECISION, EntryType.CONTEXT)
"""The chat's entries that go to the agent. People read the others."""


class Binding(Struct, frozen=True):
    """The issue of a thread. Entries up to `handed_seq` have been handed over."""

    handoff_id: str
    project: str
    issue: IssueId
    handed_seq: int


def bind(bridge: HandoffBridge, ident: str, project: str, issue: IssueId) -> Binding:
    """Bind an active thread to this issue, and to no other.

    Raises:
        UsageError: there is no such thread.
        CompletedError: the thread was closed.

    """
    with transaction(bridge.connection):
        bridge.active(ident)
        bridge.connection.execute(BOUND, (ident, project, issue))
        found = find_binding(bridge, ident)
    assert found is not None, "it was just written"
    return found


def find_binding(bridge: HandoffBridge, ident: str) -> Binding | None:
    """Return the issue that the thread is about, or None."""
    row = bridge.connection.execute(OF_HANDOFF, (ident,)).fetchone()
    return Binding(*row) if row else None


def list_about_issue(bridge: HandoffBridge, project: str, issue: IssueId) -> tuple[Binding, ...]:
    """Return the active threads about this issue, oldest first."""
    rows = bridge.connection.execute(OF_ISSUE, (project, issue))
    return tuple(Binding(*row) for row in rows)


def list_waiting(bridge: HandoffBridge, binding: Binding) -> tuple[HandoffEntry, ...]:
    """Return the chat's entries that still have to be handed over, in order."""
    # Often only the agent has written since, and a lot. So its entries are not read at all.
    said = bridge.entries(binding.handoff_id, after=binding.handed_seq, by=HandoffClient.CHAT)
    return tuple(filter(is_for_agent, said))


def is_for_agent(entry: HandoffEntry) -> bool:
    """Say whether the entry goes to the agent that works on the issue."""
    return entry.from_client is HandoffClient.CHAT and entry.type in FROM_CHAT


def mark_handed(bridge: HandoffBridge, binding: Binding, entry: HandoffEntry) -> None:
    """Note that the entry, and all before it, have been handed over for that issue.

    If the thread was bound to another issue meanwhile, nothing changes.
    """
    about = (binding.handoff_id, binding.project, binding.issue)
    with transaction(bridge.connection):
        bridge.connection.execute(HANDED, (entry.seq, *about))
