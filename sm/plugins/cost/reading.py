"""Reads files of an agent CLI on from where they were read last, in small pieces."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from sm.adapters.agent.spending import Account, Entry, Reader, Settled, find_reader
from sm.plugins.cost.growth import find_size
from sm.plugins.cost.ledger import Followed, Ledger, Mark

PIECE = 4 * 1024 * 1024
"""Bytes that are entered at once: what a killed process has to read again."""
LONGEST = 32 * 1024 * 1024
"""Bytes; a longer line is passed over. An answer is far below that."""


def read_on(ledger: Ledger, reader: Reader, file: Followed) -> int:
    """Enter what a file has had added to it; returns how many entries that were.

    A last line without its end is left for the next time. A file that has become shorter, or that
    has another line where we have stopped, is read from its beginning.
    """
    try:
        opened = open(file.path, "rb", opener=_open_nonblocking)  # noqa: SIM115 - closed below
    except OSError:
        return 0  # not there yet, or not any more
    count = 0
    with opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            return 0
        mark = _check(opened, file.mark)
        for now, found in _read_pieces(opened, reader, mark):
            ledger.enter(file, now, found)
            count += len(found)
    return count


def read_all(ledger: Ledger, files: list[Followed]) -> None:
    """Read these files on, if they have grown."""
    for file in files:
        reader = find_reader(file.reader)
        if reader and find_size(file.path) not in (None, file.mark.position):
            read_on(ledger, reader, file)


def _check(file: BinaryIO, mark: Mark) -> Mark:
    """The mark, if the file still has the end of a line there; else its beginning."""
    if not mark.position:
        return mark
    file.seek(mark.position - 1)
    return mark if file.read(1) == b"\n" else Mark()


def _read_pieces(
    file: BinaryIO, reader: Reader, mark: Mark
) -> Iterator[tuple[Mark, list[Entry | Settled | Account]]]:
    """What each piece of whole lines says, and the mark behind it."""
    file.seek(mark.position)
    found: list[Entry | Settled | Account] = []
    position, before, begun = mark.position, mark.before, mark.position
    while line := file.readline(LONGEST):
        if not line.endswith(b"\n"):
            if len(line) < LONGEST:
                break
            position = _pass_over(file, position)
            continue
        position += len(line)
        before, said = reader.read(before, line)
        found += said
        if position - begun >= PIECE:
            yield Mark(position, before), found
            found, begun = [], position
    if position != begun:
        yield Mark(position, before), found


def _pass_over(file: BinaryIO, position: int) -> int:
    """Where the line ends that is too long; where it begins, if it has no end yet."""
    while line := file.readline(LONGEST):
        if line.endswith(b"\n"):
            return file.tell()
    return position


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a FIFO would wait
