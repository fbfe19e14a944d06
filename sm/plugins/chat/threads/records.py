"""The parts of a thread between two clients, and their JSON for tools and `--json`. Pure."""

from __future__ import annotations

import string
from enum import StrEnum
from typing import Any

from msgspec import Struct, structs

PREFIX = "hof_"
ALPHABET = string.ascii_letters + string.digits + "_-"
LENGTH = 21
"""126 random bits, like a nanoid, so that an id cannot be guessed."""


class HandoffClient(StrEnum):
    """A client: the chat decides, the coding client carries out."""

    CHAT = "chat"
    CODE = "code"


class EntryType(StrEnum):
    """The purpose of an entry."""

    CONTEXT = "context"
    TASK = "task"
    PROGRESS = "progress"
    QUESTION = "question"
    DECISION = "decision"
    DONE = "done"


class HandoffStatus(StrEnum):
    """State of a thread."""

    ACTIVE = "active"
    COMPLETED = "completed"


class HandoffRecord(Struct, frozen=True):
    """One thread of two clients; the cursors are sequence numbers of entries.

    Times are ISO 8601 in UTC.
    """

    id: str
    title: str
    project: str | None
    chat_last_seen: int
    code_last_seen: int
    status: HandoffStatus
    created_at: str
    updated_at: str

    def last_seen(self, client: HandoffClient) -> int:
        """Return the number of the last entry that this client has seen; 0 for none."""
        return self.chat_last_seen if client is HandoffClient.CHAT else self.code_last_seen


class HandoffEntry(Struct, frozen=True):
    """Entry of one client; `seq` grows over all threads."""

    seq: int
    handoff_id: str
    from_client: HandoffClient
    type: EntryType
    content: str
    created_at: str


class HandoffThread(Struct, frozen=True):
    """A thread as `client` sees it, with all its entries in order."""

    handoff: HandoffRecord
    entries: tuple[HandoffEntry, ...]
    client: HandoffClient

    @property
    def new_entries(self) -> tuple[HandoffEntry, ...]:
        """The entries that the client has not seen."""
        return tuple(filter(self.is_new, self.entries))

    def is_new(self, entry: HandoffEntry) -> bool:
        """Say whether the client has not seen the entry yet."""
        return entry.seq > self.handoff.last_seen(self.client)


def make_id() -> str:
    """Make an id for a thread, from a cryptographic source."""
    import secrets

    return PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


Shape = dict[str, Any]


def shape_created(thread: HandoffThread) -> Shape:
    """Return the new thread and its first entry."""
    return shape_handoff(thread.handoff) | {
        "entries": [structs.asdict(entry) for entry in thread.entries]
    }


def shape_thread(thread: HandoffThread) -> Shape:
    """Return a whole thread, and what is new for the caller."""
    new = [structs.asdict(entry) for entry in thread.new_entries]
    return shape_created(thread) | {"new_entries": new, "new_count": len(new)}


def shape_added(handoff: HandoffRecord, entry: HandoffEntry) -> Shape:
    """Return the thread in its new state, and the entry."""
    return shape_handoff(handoff) | {"entry": structs.asdict(entry)}


def shape_handoff(handoff: HandoffRecord) -> Shape:
    """Return the thread alone."""
    return {"handoff": structs.asdict(handoff)}
