"""Handoffs that are about an issue: what the chat has said is handed to who works on it, once."""

from __future__ import annotations

from msgspec import Struct

from sm.bridge.database import transaction
from sm.bridge.handoffs import Bridge
from sm.bridge.records import Client, Entry, EntryType

OF_HANDOFF = """
SELECT handoff_id, project, issue, handed_seq FROM handoff_bindings WHERE handoff_id = ?
"""
OF_ISSUE = """
SELECT handoff_id, b.project, issue, handed_seq
FROM handoff_bindings AS b JOIN handoffs ON id = handoff_id
WHERE b.project = ? AND issue = ? AND status = 'active' ORDER BY created_at, id
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
"""What of the chat's reaches the agent; the rest is for people to read."""


class Binding(Struct, frozen=True):
    """The issue that a handoff is about; up to `handed_seq` it has been handed over."""

    handoff_id: str
    project: str
    issue: int
    handed_seq: int


def bind(bridge: Bridge, ident: str, project: str, issue: int) -> Binding:
    """Make an active handoff one about this issue; about another one it is no longer.

    Raises:
        UsageError: there is no such handoff.
        CompletedError: it was closed.

    """
    with transaction(bridge.connection):
        bridge.active(ident)
        bridge.connection.execute(BOUND, (ident, project, issue))
        found = of_handoff(bridge, ident)
    assert found is not None, "it was just written"
    return found


def of_handoff(bridge: Bridge, ident: str) -> Binding | None:
    """What the handoff is about, None where it is about no issue."""
    row = bridge.connection.execute(OF_HANDOFF, (ident,)).fetchone()
    return Binding(*row) if row else None


def of_issue(bridge: Bridge, project: str, issue: int) -> tuple[Binding, ...]:
    """The active handoffs about this issue, oldest first."""
    rows = bridge.connection.execute(OF_ISSUE, (project, issue))
    return tuple(Binding(*row) for row in rows)


def waiting(bridge: Bridge, binding: Binding) -> tuple[Entry, ...]:
    """What of the chat's has not been handed over, in order."""
    # Often only the agent has written since, and much: its entries are not even read.
    said = bridge.entries(binding.handoff_id, after=binding.handed_seq, by=Client.CHAT)
    return tuple(filter(is_for_agent, said))


def is_for_agent(entry: Entry) -> bool:
    """Whether it is handed to who works on the issue."""
    return entry.from_client is Client.CHAT and entry.type in FROM_CHAT


def handed(bridge: Bridge, binding: Binding, entry: Entry) -> None:
    """Note that the entry, and all before it, have been handed over for that issue.

    Where the handoff was bound to another one meanwhile, nothing has been handed over there.
    """
    about = (binding.handoff_id, binding.project, binding.issue)
    with transaction(bridge.connection):
        bridge.connection.execute(HANDED, (entry.seq, *about))
