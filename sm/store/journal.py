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

from sm.base.decoding import Decoder, find_decoder
from sm.store.events import KINDS, Event
from sm.store.files import append_line, open_guarded, rename_longer

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
    """The event with its longest texts cut until its line is short enough."""
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
    """Every event (of one session), oldest first; lines that are no events are passed over.

    Raises:
        StateError: what is there is no plain file of ours.

    """
    for file in (name_previous(path), path):
        with _reading(file) as lines:
            yield from parse_events(lines, session)


def name_previous(path: Path) -> Path:
    """Where the journal goes when it has become too large, and a new one is begun."""
    return path.with_name(path.name + ".1")


def parse_events(lines: Iterable[bytes], session: str = "") -> Iterator[Event]:
    """The events (of one session) that the lines tell; those that are none are passed over."""
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
    """The events behind byte `position`, oldest first, and the position behind the last of them.

    A journal that was begun anew is shorter than it was: what the one before it had is read first.
    Only the last `LOOK_BACK` bytes are read of each.

    Raises:
        StateError: what is there is no plain file of ours.

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
    """The whole lines behind `position` that are events, and where the last line ends."""
    start = max(position, lines.seek(0, 2) - LOOK_BACK)
    lines.seek(start)
    whole = lines.read()
    whole = whole[: whole.rfind(b"\n") + 1]
    return list(parse_events(whole.splitlines())), start + len(whole)


class Reader:
    """Reads a journal from its beginning, and then on from where it stopped; one thread at a time.

    What is appended while the journal is begun anew is not lost: the file before it is known by its
    inode, and read to its end first.
    """

    def __init__(self, path: Path) -> None:
        """Nothing was read yet."""
        self._path = path
        self._file: tuple[int, int] | None = None
        self._position = 0

    def read_on(self) -> Iterator[Event]:
        """The events that were not read yet, oldest first.

        Raises:
            StateError: what is there is no plain file of ours.

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
        """The whole lines behind `position`; of a file that was cut short, all."""
        self._position = position if position <= lines.seek(0, 2) else 0
        lines.seek(self._position)
        for line in lines:
            if not line.endswith(b"\n"):
                return
            self._position += len(line)
            yield line


def _identify(lines: BinaryIO) -> tuple[int, int] | None:
    """Which file it is; None if there is none."""
    if isinstance(lines, BytesIO):
        return None
    found = os.fstat(lines.fileno())
    return found.st_dev, found.st_ino


def find_size(path: Path) -> int:
    """How many bytes the journal has, 0 where there is none."""
    with _reading(path) as lines:
        return lines.seek(0, 2)


def find_latest(path: Path, sessions: Set[str], having: str = "") -> dict[str, Event]:
    """The last event of each of `sessions`: read once, from the end, until all are found.

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
    """The events of the last `LOOK_BACK` bytes; lines that are no events are passed over."""
    return parse_events(read_backwards(path))


def read_having(path: Path, text: str) -> Iterator[Event]:
    """Those of these events that have `text` as a field: the others need no decoding."""
    return parse_events(_read_marked(path, msgspec.json.encode(text)))


def read_backwards(path: Path) -> Iterator[bytes]:
    """The lines of the last `LOOK_BACK` bytes, newest first.

    Raises:
        StateError: what is there is no plain file of ours.

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
    """Those of these lines in which `mark` stands: it is looked for in all of them at once."""
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
    """The file from its beginning; an empty one where there is none."""
    try:
        with open_guarded(path, os.O_RDONLY) as fd, os.fdopen(fd, "rb", closefd=False) as lines:
            yield lines
    except FileNotFoundError:
        yield BytesIO()
