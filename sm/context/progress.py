"""Progress of an act on a context, for every screen: what is done now, what waits for a person."""

from __future__ import annotations

import time

from msgspec import Struct

from sm.base.errors import StateError
from sm.base.refusal import Refusal, tell_refusal
from sm.context import rotation_files
from sm.context.rotation import Cause, RotationRecord, RotationStage
from sm.messages import alerts
from sm.sessions.presence_rule import LEFT_S, Disturbance
from sm.sessions.session import Session
from sm.store import events, journal
from sm.store.damage import read_rebuildable
from sm.store.files import discard, read_json, write_json
from sm.store.paths import SessionDir

CAUSES = {
    Cause.HANDOFF: "handoff",
    Cause.CYCLE: "cycle",
    Cause.COMMAND: "by hand",
    Cause.LEAVE: "its machine's time is over soon",
}
STEPS = {
    RotationStage.REQUEST: "asks for a document",
    RotationStage.DOCUMENT: "waits for the document",
    RotationStage.QUIET: "waits for the turn's end",
    RotationStage.CLEAR: "clears the context",
    RotationStage.RESUME: "tells the new context",
    RotationStage.VERIFY: "waits for the new context to go on",
}


class Replacement(Struct, frozen=True):
    """Replacement under way: who wants it and its progress, as `by hand, waits for the document`.

    `age_s` counts from its request, else from its beginning, in seconds; `obstacle` is what is in
    its way, '' for nothing.
    """

    told: str
    age_s: float
    obstacle: str = ""


def find_replacement(directory: SessionDir) -> Replacement | None:
    """Return the progress of the context's replacement, None if it is not being replaced.

    Raises:
        StateError: a file of it is damaged.

    """
    if record := rotation_files.read_record(directory):
        return Replacement(
            f"{CAUSES[record.cause]}, {_step(record)}",
            _age(record.asked_at or record.began_at),
            tell_refusal(record.obstacle),
        )
    if wish := rotation_files.read_wish(directory):
        return Replacement(f"{CAUSES[Cause.HANDOFF]}, {STEPS[RotationStage.QUIET]}", _age(wish.at))
    return None


def _step(record: RotationRecord) -> str:
    if record.cause is Cause.LEAVE and record.step is RotationStage.CLEAR:
        return "its work is pushed"
    if record.parked:
        return "waits for the API to answer"
    if record.resting:
        return "asks for a document again soon"
    return STEPS[record.step]


def _age(at: float) -> float:
    return max(0.0, time.time() - at)


def describe(directory: SessionDir) -> str:
    """Describe the replacement in a sentence, with what is in its way; '' if nothing goes on."""
    try:
        found, waits = find_replacement(directory), read_withheld(directory)
    except StateError as error:
        return error.message
    if found is None:
        return waits.sentence if waits else ""
    way = f"; in the way: {found.obstacle}" if found.obstacle else ""
    if found.told.startswith(CAUSES[Cause.LEAVE]):
        return f"{found.told}{way}"
    return f"its context is being replaced: {found.told}{way}"


class Withheld(Struct, frozen=True):
    """Act that waits, the reason, and since when (seconds since 1970)."""

    deed: Disturbance
    refusal: Refusal
    since: float

    @property
    def sentence(self) -> str:
        """Sentence for a person."""
        return f"{self.deed} waits: {self.refusal.sentence}"


def read_withheld(directory: SessionDir) -> Withheld | None:
    """Return the act that waits now; None for none.

    Raises:
        StateError: the file is damaged.

    """
    return read_json(directory.withheld, Withheld)


def note_withheld(session: Session, deed: Disturbance, refusal: Refusal) -> None:
    """Note the act, once in the journal; tell people of a draft that has stood for long."""
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


def forget_withheld(directory: SessionDir) -> None:
    """Note that nothing waits any more."""
    if directory.withheld.exists():
        discard(directory.withheld)
