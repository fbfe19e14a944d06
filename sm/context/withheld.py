"""Keeps for people an act on a context that waits for a person at its terminal."""

from __future__ import annotations

import time

from msgspec import Struct

from sm.base.refusal import Refusal
from sm.messages import alerts
from sm.sessions.presence_rule import LEFT_S, Disturbance
from sm.sessions.session import Session
from sm.store import events, journal
from sm.store.damage import read_rebuildable
from sm.store.files import discard, read_json, write_json
from sm.store.paths import SessionDir


class Withheld(Struct, frozen=True):
    """Act that waits, the reason, and since when (seconds since 1970)."""

    deed: Disturbance
    refusal: Refusal
    since: float

    @property
    def sentence(self) -> str:
        """Sentence for a person."""
        return f"{self.deed} waits: {self.refusal.sentence}"


def read(directory: SessionDir) -> Withheld | None:
    """Return the act that waits now; None for none.

    Raises:
        StateError: the file is damaged.

    """
    return read_json(directory.withheld, Withheld)


def note(session: Session, deed: Disturbance, refusal: Refusal) -> None:
    """Note it, once in the journal; a draft that stands for long may be forgotten: that is told."""
    known = read_rebuildable(session.dir.withheld, Withheld)
    if known is None or (known.deed, known.refusal) != (deed, refusal):
        known = Withheld(deed, refusal, time.time())
        write_json(session.dir.withheld, known)
        journal.record(
            session.root.journal, events.Waiting(session=session.name, reason=known.sentence)
        )
    if refusal is Refusal.DRAFT and time.time() > known.since + LEFT_S:
        text, look = f"is left as it is: {known.sentence}", f"sm attach {session.address}"
        alerts.note(session, text, f"withheld:{known.since:.0f}", command=look)


def forget(directory: SessionDir) -> None:
    """Note that nothing waits any more."""
    if directory.withheld.exists():
        discard(directory.withheld)
