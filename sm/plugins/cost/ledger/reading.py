"""Reads files of an agent CLI on from where they were read last, in small pieces.

What was added to a file and taken away again before it was read is lost: a file that is gone, has
become shorter or has other lines than before leaves an entry that says so. An agent can do that,
and so can a client that takes back a line of its own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from msgspec import structs

from sm.plugins.cost.ledger import unknowns
from sm.plugins.cost.ledger.entries import Followed, Ledger, Mark
from sm.plugins.cost.ledger.progress import find_size, is_readable
from sm.plugins.cost.ledger.records.record import (
    Before,
    Certainty,
    Entry,
    Reader,
    Said,
    find_reader,
)

PIECE = 4 * 1024 * 1024
"""Bytes that are entered at once: what a killed process has to read again."""
LONGEST = 32 * 1024 * 1024
"""Bytes; a longer line is passed over, and what it says is unknown. An answer is far below that."""
TAIL = 2048
"""Bytes before the mark by which a file is known again: its last line has ids and times in them."""
HISTORY = 256 * 1024
"""Bytes at the end of what people have typed that are looked through: some thousand lines."""


def read_on(ledger: Ledger, reader: Reader, file: Followed) -> int:
    """Enter what a file has had added to it; returns how many entries that were.

    A last line without its end is left for the next time. A file that has become shorter, or that
    has another line where we have stopped, is read from its beginning.
    """
    opened = open_record(file.path)
    if opened is None:
        return 0
    count = 0
    with opened:
        mark = file.mark
        if not _is_known(opened, mark):
            count += unknowns.enter_loss(ledger, file)
            mark = Mark()
        for now, found in _read_pieces(opened, reader, mark, file.path):
            ledger.enter(file, now, found)
            count += len(found)
    return count


def open_record(path: Path) -> BinaryIO | None:
    """Open a plain file of ours; None if it is none, not there yet, or not any more."""
    try:
        opened = open(path, "rb", opener=_open_nonblocking)  # noqa: SIM115 - closed by who reads it
    except (OSError, ValueError):
        return None
    if is_readable(os.fstat(opened.fileno())):
        return opened
    opened.close()
    return None


def read_all(ledger: Ledger, files: list[Followed]) -> None:
    """Read these files on, if they have grown."""
    for file in files:
        reader = find_reader(file.reader)
        if reader and find_size(file.path) not in (None, file.mark.position):
            read_on(ledger, reader, file)
    read_histories(ledger, files)


def read_histories(ledger: Ledger, files: Iterable[Followed]) -> int:
    """Enter what people have asked beside the conversations of these files; returns how often."""
    count = 0
    owners = dict[tuple[str, Path], dict[str, Followed]]()
    for file in files:
        reader = find_reader(file.reader)
        if reader and (history := reader.find_history(file.path)):
            owners.setdefault((file.reader, history), {})[file.path.stem] = file
    for (name, history), by_context in owners.items():
        reader = find_reader(name)
        opened = open_record(history)
        if reader is None or opened is None:
            continue
        with opened:
            opened.seek(max(0, (find_size(history) or 0) - HISTORY))
            lines = opened.read(HISTORY).splitlines()
        for entry in filter(None, map(reader.read_history, lines)):
            if entry.context in by_context:
                count += unknowns.enter_aside(ledger, by_context[entry.context].owner, entry)
    return count


def _is_known(file: BinaryIO, mark: Mark) -> bool:
    """Whether the file still has the end of the line there that was read last."""
    if not mark.position:
        return True
    file.seek(max(0, mark.position - TAIL))
    tail = file.read(min(TAIL, mark.position))
    known = mark.before.tail
    return tail.endswith(b"\n") and (not known or known == _digest(tail))


def _digest(tail: bytes) -> str:
    return hashlib.sha256(tail).hexdigest()[:16]


def _read_pieces(
    file: BinaryIO, reader: Reader, mark: Mark, path: Path
) -> Iterator[tuple[Mark, list[Said]]]:
    """What each piece of whole lines says, and the mark behind it."""
    file.seek(mark.position)
    found: list[Said] = []
    position, before, begun = mark.position, mark.before, mark.position
    tail = b""
    while line := file.readline(LONGEST):
        if not line.endswith(b"\n"):
            if len(line) < LONGEST:
                break
            begins, position = position, _pass_over(file, position)
            if position == begins:
                break  # it has no end yet
            found.append(_make_unread(path, begins))
            tail = b""
            continue
        position += len(line)
        tail = (tail + line)[-TAIL:]
        before, said = reader.read(before, line)
        found += said
        if position - begun >= PIECE:
            yield _make_mark(position, before, tail), found
            found, begun = [], position
    if position != begun:
        yield _make_mark(position, before, tail), found


def _make_mark(position: int, before: Before, tail: bytes) -> Mark:
    """The mark; without a digest where less was read than that takes."""
    whole = len(tail) == min(TAIL, position)
    return Mark(position, structs.replace(before, tail=_digest(tail) if whole else ""))


def _make_unread(path: Path, position: int) -> Entry:
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return Entry(key=f"unread:{name}:{position}", at=0.0, context="", certainty=Certainty.UNKNOWN)


def _pass_over(file: BinaryIO, position: int) -> int:
    """Where the line ends that is too long; where it begins, if it has no end yet."""
    while line := file.readline(LONGEST):
        if line.endswith(b"\n"):
            return file.tell()
    return position


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO would wait
