"""Reads the lines that an agent's hooks write for each event: `TIME EVENT CONTEXT DETAIL`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from msgspec import Struct

from sm.base.foreign import read_seconds
from sm.store.files import append_line, create_exclusive, read_guarded, read_harmless, write_atomic
from sm.store.paths import SessionDir

TRIM_AT = 256 * 1024
"""Bytes; sm keeps up to as many from before."""
COMPACTION = "PreCompact"


def read_events(directory: SessionDir, name: str = "") -> Iterator[list[str]]:
    """Yield each event's four words, oldest first; skip other lines.

    With a `name`, a file without such an event is not split into lines: most files have none.
    """
    for path in (directory.events_before, directory.events):
        data = read_harmless(path)
        if name.encode() not in data:
            continue
        for line in data.decode("utf-8", "replace").split("\n"):
            if len(words := line.split()) == 4:
                yield words


class Compaction(Struct, frozen=True):
    """One compaction of a context: its time as the hook wrote it, and `auto` or `manual`."""

    at: str
    trigger: str

    @property
    def seconds(self) -> float:
        """The event's time in seconds since 1970."""
        return _number(self.at)


def list_compactions(directory: SessionDir) -> list[Compaction]:
    """Return the compactions that were not told yet, oldest first.

    It goes by the order of the lines, because the clock may have been set back between two. If the
    last told one is missing, all lines are newer.
    """
    told = (read_guarded(directory.told) or b"").decode("ascii", "replace").strip()
    found: list[Compaction] = []
    for at, event, _, detail in read_events(directory, COMPACTION):
        if event == COMPACTION and detail != "stale":
            found.append(Compaction(at, detail))
        if event == COMPACTION and at == told:
            found.clear()
    return found


def find_last(directory: SessionDir, *names: str, context: str = "") -> float:
    """Return the time of the last of these events, in one context or in any; 0 if there is none."""
    return max(
        (
            _number(at)
            for at, event, of_context, detail in read_events(directory)
            if event in names and detail != "stale" and context in ("", of_context)
        ),
        default=0.0,
    )


def count(directory: SessionDir, name: str, context: str) -> int:
    """Count this event in this context."""
    return sum(
        event == name and of_context == context and detail != "stale"
        for _, event, of_context, detail in read_events(directory, name)
    )


def note_compaction(directory: SessionDir, context: str, trigger: str) -> None:
    """Write the line that the hook writes, for an agent whose hook does not reach its directory."""
    word = trigger if trigger in ("auto", "manual") else "unknown"
    line = f"{time.time():.6f} {COMPACTION} {context or '-'} {word}"
    append_line(directory.events, line.encode())


def note_told(directory: SessionDir, at: str) -> None:
    """Note that everything up to then was told."""
    write_atomic(directory.told, f"{at}\n")


def _number(text: str) -> float:
    return read_seconds(text) or 0.0


def trim(directory: SessionDir) -> None:
    """Keep the file short. A line that a hook is just writing goes into the old file, and stays."""
    with contextlib.suppress(FileNotFoundError):
        found = directory.events.stat()
        if found.st_size <= TRIM_AT:
            return
        directory.events.rename(directory.events_before)
        if create_exclusive(directory.events):  # otherwise a hook was quicker
            os.utime(directory.events, ns=(found.st_atime_ns, found.st_mtime_ns))
