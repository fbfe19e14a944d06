"""Lines of JSON that two `sm` exchange: one for each thing said, read by its shape."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct

from sm.base.decoding import decode
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
