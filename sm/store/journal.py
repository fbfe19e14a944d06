"""The story of every session: one JSON line an event, appended, never rewritten.

`sm.store.events` has the kinds of events and their fields.
"""

from __future__ import annotations

import functools
import operator
import os
import time
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import structs

from sm.base.decoder import Decoder, find_decoder
from sm.store.events import KINDS, Event
from sm.store.files import append_line, open_guarded, rename_longer

LINE_LIMIT = 4000
"""Bytes; below the size up to which an append is one piece on every file system."""

ROTATE_AT = 32 * 1024 * 1024
"""Bytes; the journal before it is kept once, as `journal.jsonl.1`."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors in which decoding a damaged line ends."""
LOOK_BACK = 8 * 1024 * 1024
"""Bytes from the end that are searched for the last event of a session."""

BLOCK = 256 * 1024
AGAIN_S = 3600.0
"""Pause, in seconds, after which an event that is found at every look is recorded again."""


def record(path: Path, event: Event) -> None:
    """Append an event that happens now; an over-long text in it is cut, its end replaced by '…'."""
    append(path, msgspec.json.encode(_fitting(structs.replace(event, at=time.time()))))


def record_once(path: Path, event: Event) -> None:
    """Append an event that is found at every look, unless it was appended within the hour."""
    new = _fitting(structs.replace(event, at=time.time()))
    for known in read_newest_first(path):
        if known.at < new.at - AGAIN_S:
            break
        if structs.replace(known, at=new.at) == new:
            return
    append(path, msgspec.json.encode(new))


def _fitting(event: Event) -> Event:
    """Cut the longest texts of an event until its line is short enough."""
    while len(msgspec.json.encode(event)) > LINE_LIMIT:
        texts = {name: text for name, text in structs.asdict(event).items() if type(text) is str}
        longest = max(texts, key=lambda name: len(texts[name]))
        # Escapes can make a character six bytes long, so what is kept is cut to a sixth.
        keep = min(LINE_LIMIT // 6, len(texts[longest]) // 2)
        event = structs.replace(event, **{longest: texts[longest][:keep] + "…"})
    return event


def append(path: Path, line: bytes) -> None:
    """Append a line of any shape to a log that is bounded and read as the journal is.

    Raises:
        StateError: it cannot be written.

    """
    with suppress(OSError):  # better too long than without this line
        if path.stat().st_size > ROTATE_AT:
            rename_longer(path, name_previous(path), than=ROTATE_AT)
    append_line(path, line)


def read(path: Path, session: str = "") -> Iterator[Event]:
    """Yield every event (of one session), oldest first; lines that are no events are passed over.

    Raises:
        StateError: no plain file of ours is there.

    """
    for file in (name_previous(path), path):
        with _reading(file) as lines:
            yield from parse_events(lines, session)


def name_previous(path: Path) -> Path:
    """Return the path of the previous journal: a journal that is too large goes there."""
    return path.with_name(path.name + ".1")


def parse_events(lines: Iterable[bytes], session: str = "") -> Iterator[Event]:
    """Yield the events (of one session) in the lines; lines that are no events are passed over."""
    named = msgspec.json.encode(session) if session else b""
    for line in lines:
        # Most lines of a long journal are of other sessions: these need no decoding.
        if named in line and (event := _decode(line)) and session in ("", event.session):
            yield event


def _decode(line: bytes) -> Event | None:
    try:
        event = _decoder().decode(line)
    except UNREADABLE:
        return None
    return event if event.at else None


@functools.cache
def _decoder() -> Decoder[Event]:
    return find_decoder(functools.reduce(operator.or_, KINDS))


def read_since(path: Path, position: int) -> tuple[list[Event], int]:
    """Return the events behind byte `position`, oldest first, and the position behind the last.

    A journal that was begun again is shorter than it was: the rest of the one before is read first.
    Only the last `LOOK_BACK` bytes of each are read.

    Raises:
        StateError: no plain file of ours is there.

    """
    with _reading(path) as lines:
        if position <= lines.seek(0, 2):
            return _read_behind(lines, position)
    with _reading(name_previous(path)) as lines:
        earlier, _ = _read_behind(lines, position)
    with _reading(path) as lines:
        events, end = _read_behind(lines, 0)
    return earlier + events, end


def _read_behind(lines: BinaryIO, position: int) -> tuple[list[Event], int]:
    """Return the events in the whole lines behind `position`, and where the last line ends."""
    start = max(position, lines.seek(0, 2) - LOOK_BACK)
    lines.seek(start)
    whole = lines.read()
    whole = whole[: whole.rfind(b"\n") + 1]
    return list(parse_events(whole.splitlines())), start + len(whole)


class Reader:
    """Reads a journal from its beginning, and then on from where it stopped; one thread at a time.

    No line is lost while the journal is begun again: the previous file is known by its inode, and
    read to its end first.
    """

    def __init__(self, path: Path) -> None:
        """Store the path; nothing is read yet."""
        self._path = path
        self._file: tuple[int, int] | None = None
        self._position = 0

    def read_on(self) -> Iterator[Event]:
        """Yield the events that were not read yet, oldest first.

        Raises:
            StateError: no plain file of ours is there.

        """
        with _reading(self._path) as current:
            file = _identify(current)
            if file != self._file:
                with _reading(name_previous(self._path)) as older:
                    begun = _identify(older) == self._file
                    yield from parse_events(self._read_lines(older, self._position if begun else 0))
                self._file, self._position = file, 0
            yield from parse_events(self._read_lines(current, self._position))

    def _read_lines(self, lines: BinaryIO, position: int) -> Iterator[bytes]:
        """Yield the whole lines behind `position`; all of them if the file was cut short."""
        self._position = position if position <= lines.seek(0, 2) else 0
        lines.seek(self._position)
        for line in lines:
            if not line.endswith(b"\n"):
                return
            self._position += len(line)
            yield line


def _identify(lines: BinaryIO) -> tuple[int, int] | None:
    """Return the device and inode of the file; None if there is none."""
    if isinstance(lines, BytesIO):
        return None
    found = os.fstat(lines.fileno())
    return found.st_dev, found.st_ino


def find_size(path: Path) -> int:
    """Return the size of the journal in bytes, 0 if there is none."""
    with _reading(path) as lines:
        return lines.seek(0, 2)


def find_latest(path: Path, sessions: Set[str], having: str = "") -> dict[str, Event]:
    """Return the last event of each of `sessions`: read once, from the end, until all are found.

    With `having` only events that have this text as a field: the others need no decoding.
    """
    wanted, found = set(sessions), dict[str, Event]()
    for entry in read_having(path, having) if having else read_newest_first(path):
        if not wanted:
            break
        if entry.session in wanted:
            wanted.discard(entry.session)
            found[entry.session] = entry
    return found


def read_newest_first(path: Path) -> Iterator[Event]:
    """Yield the events of the last `LOOK_BACK` bytes, newest first; other lines are passed over."""
    return parse_events(read_backwards(path))


def is_read_whole(path: Path) -> bool:
    """Whether `read_newest_first` yields every event that was ever recorded."""
    return not name_previous(path).exists() and find_size(path) <= LOOK_BACK


def read_having(path: Path, text: str) -> Iterator[Event]:
    """Yield those events that have `text` as a field: the others need no decoding."""
    return parse_events(_read_marked(path, msgspec.json.encode(text)))


def read_backwards(path: Path) -> Iterator[bytes]:
    """Yield the lines of the last `LOOK_BACK` bytes, newest first.

    Raises:
        StateError: no plain file of ours is there.

    """
    left = LOOK_BACK
    for file in (path, name_previous(path)):
        with _reading(file) as lines:
            position, rest = lines.seek(0, 2), b""
            while position > 0 and left > 0:
                size = min(BLOCK, position)
                position, left = lines.seek(position - size), left - size
                rest, *whole = (lines.read(size) + rest).split(b"\n")
                yield from reversed(whole)
            if position == 0:
                yield rest


def _read_marked(path: Path, mark: bytes) -> Iterator[bytes]:
    """Yield the lines that contain `mark`: it is looked for in all of them at once."""
    left = LOOK_BACK
    for file in (path, name_previous(path)):
        with _reading(file) as lines:
            lines.seek(max(0, lines.seek(0, 2) - left))
            data = lines.read()
        left -= len(data)
        end = len(data)
        while (at := data.rfind(mark, 0, end)) >= 0:
            end = data.rfind(b"\n", 0, at) + 1
            stop = data.find(b"\n", at)
            yield data[end : stop if stop >= 0 else len(data)]


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    """Open the file at its beginning; an empty one if there is none."""
    try:
        with open_guarded(path, os.O_RDONLY) as fd, os.fdopen(fd, "rb", closefd=False) as lines:
            yield lines
    except FileNotFoundError:
        yield BytesIO()
