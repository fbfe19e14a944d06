"""The lines that an agent's hooks leave for each event: `TIME EVENT CONTEXT DETAIL`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from msgspec import Struct

from sm.foreign import read_seconds
from sm.store.files import create_exclusive, read_guarded, read_harmless, write_atomic
from sm.store.paths import SessionDir

TRIM_AT = 256 * 1024
"""Bytes; as much as that again is kept of what was before."""
COMPACTION = "PreCompact"


def events(directory: SessionDir, name: str = "") -> Iterator[list[str]]:
    """Each event's four words, oldest first; lines that are none are passed over.

    With a `name`, files without any such event are not taken apart: most have none.
    """
    for path in (directory.events_before, directory.events):
        data = read_harmless(path)
        if name.encode() not in data:
            continue
        for line in data.decode("utf-8", "replace").split("\n"):
            if len(words := line.split()) == 4:
                yield words


class Compaction(Struct, frozen=True):
    """One summing up of a context: when, as the hook wrote it, and `auto` or `manual`."""

    at: str
    trigger: str

    @property
    def seconds(self) -> float:
        """When, in seconds since 1970."""
        return _number(self.at)


def compactions(directory: SessionDir) -> list[Compaction]:
    """Those that nobody was told of yet, oldest first.

    By the order of the lines, as the clock may have been set back between two of them. Where the
    last one that was told is not there any more, all lines are younger.
    """
    told = (read_guarded(directory.told) or b"").decode("ascii", "replace").strip()
    found: list[Compaction] = []
    for at, event, _, detail in events(directory, COMPACTION):
        if event == COMPACTION and detail != "stale":
            found.append(Compaction(at, detail))
        if event == COMPACTION and at == told:
            found.clear()
    return found


def last(directory: SessionDir, *names: str, context: str = "") -> float:
    """When the last of these events was, in one context or in any; 0 where there was none."""
    return max(
        (
            _number(at)
            for at, event, of_context, detail in events(directory)
            if event in names and detail != "stale" and context in ("", of_context)
        ),
        default=0.0,
    )


def note_told(directory: SessionDir, at: str) -> None:
    """Who is to know has been told of what happened up to then."""
    write_atomic(directory.told, f"{at}\n")


def _number(text: str) -> float:
    return read_seconds(text) or 0.0


def trim(directory: SessionDir) -> None:
    """Keep the file short. What a hook is just writing goes into the old one, and is not lost."""
    with contextlib.suppress(FileNotFoundError):
        found = directory.events.stat()
        if found.st_size <= TRIM_AT:
            return
        directory.events.rename(directory.events_before)
        if create_exclusive(directory.events):  # else a hook was quicker
            os.utime(directory.events, ns=(found.st_atime_ns, found.st_mtime_ns))
