"""Texts and values of the verbs that pass texts on: the text that was given, values as JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, BinaryIO

from sm.base.errors import UsageError
from sm.base.output import say, say_json
from sm.base.text import TEXT_BYTES

if TYPE_CHECKING:
    from sm.sessions.session import AnySession

TIME_UP = 124
"""Exit code of a verb that waited in vain, the same as that of timeout(1)."""


def read_text(words: tuple[str, ...]) -> str:
    """Return the words as one text, or standard input where '-' is all there is.

    Raises:
        UsageError: what was read is not UTF-8, or too large.

    """
    return read_stdin() if words == ("-",) else " ".join(words)


def read_stdin() -> str:
    """Return standard input to its end.

    Raises:
        UsageError: as `read_stream`.

    """
    return read_stream(sys.stdin.buffer, "standard input")


def read_stream(stream: BinaryIO, what: str) -> str:
    """Return the text that is left in `stream`, which errors call `what`.

    Raises:
        UsageError: it is not UTF-8, or larger than any text may be; then the rest is not read.

    """
    data = stream.read(TEXT_BYTES + 1)
    if len(data) > TEXT_BYTES:
        raise UsageError(
            f"{what} is larger than {TEXT_BYTES:,} bytes: put it into a file that can be read "
            "where it is needed, and name that"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{what} is not UTF-8 (byte {error.start}): convert it, or send the path"
        ) from error


def print_json(value: object) -> None:
    """Print a value, or a list of them, for programs; a path, for instance, as its text."""
    import msgspec

    encoded = msgspec.json.encode(value, enc_hook=str)
    say_json(msgspec.json.format(encoded, indent=2).decode())


def tell_paused(session: AnySession, *, err: bool = False) -> None:
    """Say that the session is paused, if it is: the request waits until it goes on."""
    from sm.acts.execution import list_paused

    for sentence in list_paused(session):
        say(sentence, err=err)
