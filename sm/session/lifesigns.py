"""The lines that an agent's hooks leave for each event: `TIME EVENT CONTEXT DETAIL`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from sm.store.files import create_exclusive, read_guarded, write_atomic
from sm.store.paths import SessionDir

TRIM_AT = 256 * 1024
"""Bytes; as much as that again is kept of what was before."""
COMPACTION = "PreCompact"


def events(directory: SessionDir) -> Iterator[list[str]]:
    """Each event's four words, oldest first; lines that are none are passed over."""
    for path in (directory.events_before, directory.events):
        for line in (read_guarded(path) or b"").decode("utf-8", "replace").split("\n"):
            if len(words := line.split()) == 4:
                yield words


def compactions(directory: SessionDir) -> list[str]:
    """The moments, as the hook wrote them, of those that the parent was not told of yet."""
    told = _number((read_guarded(directory.told) or b"").decode("ascii", "replace"))
    return [
        at
        for at, event, _, detail in events(directory)
        if event == COMPACTION and detail != "stale" and _number(at) > told
    ]


def last(directory: SessionDir, *names: str) -> float:
    """When the last of these events was, seconds since 1970; 0 where there was none."""
    return max(
        (
            _number(at)
            for at, event, _, detail in events(directory)
            if event in names and detail != "stale"
        ),
        default=0.0,
    )


def note_told(directory: SessionDir, at: str) -> None:
    """The parent has been told of what happened up to then."""
    write_atomic(directory.told, f"{at}\n")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def trim(directory: SessionDir) -> None:
    """Keep the file short. What a hook is just writing goes into the old one, and is not lost."""
    with contextlib.suppress(FileNotFoundError):
        found = directory.events.stat()
        if found.st_size <= TRIM_AT:
            return
        directory.events.rename(directory.events_before)
        if create_exclusive(directory.events):  # else a hook was quicker
            os.utime(directory.events, ns=(found.st_atime_ns, found.st_mtime_ns))
