"""Lines of JSON that two processes of `sm` exchange: one for each thing said, read by its shape.

| who | over what | shapes, limit |
|---|---|---|
| a link and `sm host serve` on a node | pipes of ssh | `plugins/hosts/wire.py` |
| a command and the link | a socket: an `Ask`, a `Reply` | `plugins/hosts/ssh/asked.py` |
| a terminal here and `sm terminal` there | pipes of a runner | `plugins/page/terminal/wire.py` |

All of them have this in common. A line is one JSON value of a known shape, and it has a limit. A
longer one ends the conversation, and so does one of another shape. What is cut off, because its
writer has died, is no line. Its owner has the shapes, the limit, the line with which a node greets,
and what silence means. Readers in an event loop have asyncio's `StreamReader` cut the lines, with
the same limit; the others have `Lines`.

What nodes tell of costs (`plugins/cost/sync/wire.py`) is no such line: it is all that a command
reads, and all that it prints.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct

from sm.base.decoder import decode
from sm.base.errors import SmError

T = TypeVar("T", bound=Struct)


class WireError(SmError):
    """Data that is no line of the protocol that both sides speak."""


def encode_line(value: Struct) -> bytes:
    """Return the line for a value."""
    return msgspec.json.encode(value) + b"\n"


def decode_line(line: bytes, shape: type[T]) -> T:
    """Read a line.

    Raises:
        WireError: it is another thing.

    """
    try:
        return decode(line, shape)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError(f"no {shape.__name__.lower()} of sm: {error}") from error


class Lines:
    """Lines, made of the pieces in which a pipe or a socket hands them over."""

    def __init__(self, limit: int) -> None:
        """Begin empty; `limit` is the length of a line, in bytes."""
        self._limit, self._rest, self._seen = limit, bytearray(), 0

    def add(self, piece: bytes) -> None:
        """Take what has come."""
        self._rest += piece

    def take(self) -> bytes:
        """Return the next line, with its end; b'' until all of it has come.

        Raises:
            WireError: it is too long.

        """
        end = self._rest.find(b"\n", self._seen) + 1
        if (end or len(self._rest)) > self._limit:
            raise WireError("a line without an end")
        line = bytes(self._rest[:end])
        del self._rest[:end]
        self._seen = 0 if end else len(self._rest)
        return line

    @property
    def is_cut(self) -> bool:
        """Whether some of the next line has come."""
        return bool(self._rest)
