"""What verbs that pass texts on share: the text that was given, and values as JSON."""

from __future__ import annotations

import sys

from sm.errors import UsageError
from sm.output import say_json

TIME_UP = 124
"""The exit code of a verb that waited in vain, as that of timeout(1)."""


def read_text(words: tuple[str, ...]) -> str:
    """The words as one text, or standard input where '-' is all there is.

    Raises:
        UsageError: what was read is not UTF-8.

    """
    if words != ("-",):
        return " ".join(words)
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"standard input is not UTF-8 (byte {error.start}): convert it, or send the path"
        ) from error


def print_json(value: object) -> None:
    """A value, or a list of them, for programs; a path, for instance, as its text."""
    import msgspec

    encoded = msgspec.json.encode(value, enc_hook=str)
    say_json(msgspec.json.format(encoded, indent=2).decode())
