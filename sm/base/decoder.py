"""Reads JSON and plain values as typed shapes, in threads too.

msgspec prepares a class when it is first used as a type, and gives the half prepared one to whoever
uses it meanwhile: the process ends by a segmentation fault. With 0.22.0, on CPython 3.11, that
happened in 30 of 150 processes in which four threads began with the same class
(`tests/base/test_decoder.py`). So here a shape is prepared by one thread at a time. The linter
refuses msgspec's own functions elsewhere.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec.json import Decoder

__all__ = ["Decoder", "convert", "decode", "find_decoder"]

T = TypeVar("T")
Hook = Callable[[type, Any], Any]

_decoders: dict[tuple[Any, Hook | None], Decoder[Any]] = {}
_lock = threading.RLock()


def decode(data: bytes | str, shape: type[T], *, hook: Hook | None = None) -> T:
    """Return what the JSON in `data` says; `hook` makes the types that msgspec does not know.

    Raises:
        msgspec.DecodeError: it is no JSON, or has another shape.

    """
    found: T = find_decoder(shape, hook=hook).decode(data)
    return found


def convert(value: object, shape: type[T], *, strict: bool = True, hook: Hook | None = None) -> T:
    """Return a value made of plain ones as this shape. Not `strict`: numbers may be in strings.

    Raises:
        msgspec.ValidationError: it has another shape.

    """
    find_decoder(shape)
    return msgspec.convert(value, shape, strict=strict, dec_hook=hook)


def find_decoder(shape: type[T], *, hook: Hook | None = None) -> Decoder[T]:
    """Return the decoder of a shape: the same for all, and made once."""
    decoder = _decoders.get((shape, hook))
    if decoder is None:
        with _lock:
            decoder = _decoders[shape, hook] = Decoder(shape, dec_hook=hook)
    return decoder


def _renew_lock() -> None:
    """Renew the lock in a fork: a thread that does not exist there may have held it."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)
