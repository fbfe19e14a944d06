"""The story of every session: one JSON line an event, appended, never rewritten."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sm.store.files import append_line

LINE_LIMIT = 4000
"""Bytes; below the size up to which an append is one piece on every file system."""

ROTATE_AT = 32 * 1024 * 1024
"""Bytes; the journal before it is kept once, as `journal.jsonl.1`."""


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
    _rotate(path)
    append_line(path, line)


def _rotate(path: Path) -> None:
    try:
        if path.stat().st_size > ROTATE_AT:
            path.replace(path.with_name(path.name + ".1"))
    except FileNotFoundError:
        return


def read(path: Path, session: str = "") -> Iterator[Event]:
    """Every event (of one session), oldest first; lines that are no events are passed over."""
    decoder = msgspec.json.Decoder(Event)
    for file in (path.with_name(path.name + ".1"), path):
        if not file.exists():
            continue
        with file.open("rb") as lines:
            for line in lines:
                try:
                    entry = decoder.decode(line)
                except msgspec.DecodeError:
                    continue
                if not session or entry.session == session:
                    yield entry
