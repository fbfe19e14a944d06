"""Things that are slow to read and stay the same; a server of passes has them ready for each fork.

A pass that has read such a thing notes its reader, and the words for it. The server hears of that
when the pass has ended, and reads the thing as well: once for all later passes that want it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import cast

Reader = Callable[..., tuple[str, ...]]
"""Function that reads a thing into a cache of its own, and returns the files it is made of."""

Noted = tuple[str, ...]
"""A reader as `package.module:function`, and the words that it is called with."""

_noted: dict[Noted, None] = {}


def note(reader: str, *words: str) -> None:
    """Note that this process has read the thing of this reader and these words."""
    _noted[(reader, *words)] = None


def list_noted() -> Iterator[Noted]:
    """Yield what this process has read."""
    yield from _noted


def read(noted: Noted) -> tuple[str, ...]:
    """Read the noted thing here; return the files that it is made of."""
    reader, *words = noted
    module, _, function = reader.partition(":")
    return cast("Reader", getattr(import_module(module), function))(*words)
