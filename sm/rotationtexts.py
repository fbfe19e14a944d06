"""What an agent is told while its context is replaced. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sm import material
from sm.handoffdoc import name
from sm.rotation import Cause, Rotation

CONFIRM = "Confirm you have resumed work from handoff"


def message(
    record: Rotation,
    key: str,
    *,
    folder: str,
    sections: Sequence[str],
    missing: Sequence[str],
    path: str,
) -> str:
    """The message that `record` has under `key`: ask1, ask2, sections, resume1, resume2, confirm.

    `folder` is where a document is to be written, `path` the one that there is, `missing` the
    sections that it lacks. Three lines at most, so that an agent CLI takes it as typed.
    """
    if key.startswith("ask"):
        return request(record, key, folder, sections)
    if key == "sections":
        return _sections(missing, path)
    if key == "confirm":
        return CONFIRM
    return resume(record.cause, path)


def resume(cause: Cause, path: str) -> str:
    """The first prompt of the new context."""
    if cause is Cause.HANDOFF:
        return f"Read {material.path(path)} and continue from where you left off."
    return f"Read handoff from {material.path(path)} and resume work"


def document_name(record: Rotation, key: str) -> str:
    """What the requested document is to be called: as none that is there already.

    The second request names another one, so that an agent which finds the first in its way, damaged
    or a link, still creates a file.
    """
    at = datetime.fromtimestamp(record.began_at)
    if key != "ask1":
        again = datetime.fromtimestamp(record.since)
        at = max(again, _free(record, at) + timedelta(minutes=1))
    return name(_free(record, at))


def _free(record: Rotation, at: datetime) -> datetime:
    """The first minute from then on that no document of before the request is named for."""
    taken = {stamp.partition(":")[0] for stamp in record.before}
    while name(at) in taken:
        at += timedelta(minutes=1)
    return at


def request(record: Rotation, key: str, folder: str, sections: Sequence[str]) -> str:
    """The request for a document, the first or the second, with these headings in it."""
    reason = "" if record.percent is None else f" - context at {min(record.percent, 100):.0f}%"
    headings = f" Headings: {', '.join(sections)}." if sections else ""
    return (
        f"Create handoff document now{reason}\n"
        f"Write it to {material.path(f'{folder}/{document_name(record, key)}')}.{headings}\n"
        "Create it as a new file; when it is whole, end your turn. Your context is cleared then, "
        "and you go on from this document alone."
    )


def _sections(missing: Sequence[str], path: str) -> str:
    return (
        f"Add to the handoff document {material.path(path)} what it lacks. "
        f"Headings: {', '.join(missing)}.\n"
        "When it is whole, end your turn."
    )
