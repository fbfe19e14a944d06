"""What takes long to read and stays the same: a server of passes has it at hand for each fork.

A pass that has read such a thing notes who reads it, and by which words. The server hears of that
when the pass has ended, and reads it as well: once for all later passes that want the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import cast

Reader = Callable[..., tuple[str, ...]]
"""Reads it into a cache of its own; returns the files that it is made of."""

Noted = tuple[str, ...]
"""A reader as `package.module:function`, and the words that it is called with."""

_noted: dict[Noted, None] = {}


def note(reader: str, *words: str) -> None:
    """Remember that this process has read it."""
    _noted[(reader, *words)] = None


def list_noted() -> Iterator[Noted]:
    """Yield what this process has read."""
    yield from _noted


def read(noted: Noted) -> tuple[str, ...]:
    """Read it here; returns the files that it is made of."""
    reader, *words = noted
    module, _, function = reader.partition(":")
    return cast("Reader", getattr(import_module(module), function))(*words)
