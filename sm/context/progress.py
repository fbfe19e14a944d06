"""Words for a context that is being replaced, for every screen that shows the session."""

from __future__ import annotations

import time

from msgspec import Struct

from sm.base.errors import StateError
from sm.base.refusal import tell_refusal
from sm.context import rotation_files, withheld
from sm.context.rotation import Cause, RotationRecord, RotationStage
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
        found, waits = find_replacement(directory), withheld.read(directory)
    except StateError as error:
        return error.message
    if found is None:
        return waits.sentence if waits else ""
    way = f"; in the way: {found.obstacle}" if found.obstacle else ""
    if found.told.startswith(CAUSES[Cause.LEAVE]):
        return f"{found.told}{way}"
    return f"its context is being replaced: {found.told}{way}"
