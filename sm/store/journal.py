"""The story of every session: one JSON line an event, appended, never rewritten."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import msgspec

from sm.store.files import append_line, open_guarded

LINE_LIMIT = 4000
"""Bytes; below the size up to which an append is one piece on every file system."""

ROTATE_AT = 32 * 1024 * 1024
"""Bytes; the journal before it is kept once, as `journal.jsonl.1`."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a damaged line ends in."""
LOOK_BACK = 8 * 1024 * 1024
"""Bytes from the end in which the last event of a session is looked for."""

BLOCK = 256 * 1024
AGAIN_S = 3600.0
"""What goes on is told of so often."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that happened: `at` seconds since the epoch, to which session, what, details."""

    at: float
    event: str
    session: str = ""
    detail: str = ""


def record(path: Path, event: str, session: str = "", detail: str = "") -> None:
    """Append an event that happens now; an over-long detail is cut, its end replaced by '…'."""
    entry = Event(time.time(), event, session, detail)
    line = msgspec.json.encode(entry)
    if len(line) > LINE_LIMIT:
        keep = max(0, len(detail) - (len(line) - LINE_LIMIT) - 3)
        # Escapes can make a character six bytes long, so what is kept is cut to a sixth.
        short = detail[: min(keep, LINE_LIMIT // 6)] + "…"
        line = msgspec.json.encode(Event(entry.at, event, session, short))
    append(path, line)


def record_once(path: Path, event: str, session: str = "", detail: str = "") -> None:
    """The same for what is found at every look: once within the hour."""
    new = Event(time.time(), event, session, detail)
    for known in newest_first(path):
        if known.at < new.at - AGAIN_S:
            break
        if msgspec.structs.replace(known, at=new.at) == new:
            return
    record(path, event, session, detail)


def append(path: Path, line: bytes) -> None:
    """Append a line of any shape to a log that is bounded and read as the journal is.

    Raises:
        StateError: it cannot be written.

    """
    with suppress(OSError):  # better too long than without this line
        if path.stat().st_size > ROTATE_AT:
            path.replace(path.with_name(path.name + ".1"))
    append_line(path, line)


def read(path: Path, session: str = "") -> Iterator[Event]:
    """Every event (of one session), oldest first; lines that are no events are passed over.

    Raises:
        StateError: what is there is no plain file of ours.

    """
    decoder = msgspec.json.Decoder(Event)
    for file in (path.with_name(path.name + ".1"), path):
        with _reading(file) as lines:
            for line in lines:
                try:
                    entry = decoder.decode(line)
                except UNREADABLE:
                    continue
                if not session or entry.session == session:
                    yield entry


def latest(path: Path, sessions: Set[str]) -> dict[str, Event]:
    """The last event of each of `sessions`: read once, from the end, until all are found."""
    wanted, found = set(sessions), dict[str, Event]()
    for entry in newest_first(path):
        if not wanted:
            break
        if entry.session in wanted:
            wanted.discard(entry.session)
            found[entry.session] = entry
    return found


def newest_first(path: Path) -> Iterator[Event]:
    """The events of the last `LOOK_BACK` bytes; lines that are no events are passed over."""
    decoder = msgspec.json.Decoder(Event)
    for line in backwards(path):
        try:
            yield decoder.decode(line)
        except UNREADABLE:
            continue


def backwards(path: Path) -> Iterator[bytes]:
    """The lines of the last `LOOK_BACK` bytes, newest first.

    Raises:
        StateError: what is there is no plain file of ours.

    """
    left = LOOK_BACK
    for file in (path, path.with_name(path.name + ".1")):
        with _reading(file) as lines:
            position, rest = lines.seek(0, 2), b""
            while position > 0 and left > 0:
                size = min(BLOCK, position)
                position, left = lines.seek(position - size), left - size
                rest, *whole = (lines.read(size) + rest).split(b"\n")
                yield from reversed(whole)
            if position == 0:
                yield rest


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    """The file from its beginning; an empty one where there is none."""
    try:
        with open_guarded(path, os.O_RDONLY) as fd, os.fdopen(fd, "rb", closefd=False) as lines:
            yield lines
    except FileNotFoundError:
        yield BytesIO()
