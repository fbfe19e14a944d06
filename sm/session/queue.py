"""The messages for an agent: a Maildir, in which the folder that a file is in is its state.

`tmp`: being written. `new`: waits. `cur`: handed to the agent, its receipt is awaited.
`done`: the agent has it. Every move is one rename, so of several movers one succeeds, and a
killed one has moved it or not. The hooks of an agent move files as well: `lib/hooks`.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from sm.errors import StateError, UsageError
from sm.store.files import (
    create_exclusive,
    ensure_private_dir,
    just_before,
    read_guarded,
    sync_dir,
    write_atomic,
)
from sm.store.paths import SessionDir

ID = re.compile(r"[a-z0-9]{8,40}")
NAME = re.compile(r"(\d{19})-([a-z0-9]{8,40})\.(sequential|important|steer|urgent)")

KEPT = 500
"""So many delivered messages are kept, for a sender who asks what became of his."""


class Mode(StrEnum):
    """When the agent gets a message: see docs/MESSAGES.md."""

    SEQUENTIAL = "sequential"
    IMPORTANT = "important"
    STEER = "steer"
    URGENT = "urgent"


class Place(StrEnum):
    """Where a message is, by the name of its folder."""

    WAITING = "new"
    HANDED = "cur"
    DONE = "done"


class Message(Struct, frozen=True, kw_only=True):
    """A text for an agent, normalised already. `created_at` in seconds since 1970.

    `sender` is a session's name, '' for a person or sm itself; `notify` the session that is told
    when the turn ends in which the agent got the message.
    """

    id: str
    text: str
    mode: Mode = Mode.SEQUENTIAL
    sender: str = ""
    notify: str = ""
    created_at: float = msgspec.field(default_factory=time.time)

    @property
    def name(self) -> str:
        """Its file's name; names sort by age."""
        return f"{int(self.created_at * 1e9):019d}-{self.id}.{self.mode}"


def new_id() -> str:
    """An id that nobody has had."""
    return secrets.token_hex(8)


def put(directory: SessionDir, message: Message) -> bool:
    """Queue a message; False where one of this id is known already, wherever it is by now.

    Raises:
        UsageError: its id cannot be one.
        StateError: it cannot be written; then it is not queued.

    """
    if not ID.fullmatch(message.id):
        raise UsageError(f"'{message.id}' cannot be a message id: 8 to 40 of a-z, 0-9")
    for folder in ("", "tmp", *Place):
        ensure_private_dir(directory.queue / folder)
    if place(directory, message.id):
        return False
    temporary = directory.queue / "tmp" / f"{message.name}.{secrets.token_hex(4)}"
    write_atomic(temporary, _encode(message), durable=True)
    temporary.rename(directory.queue / Place.WAITING / message.name)
    sync_dir(directory.queue / Place.WAITING)
    if message.mode is Mode.STEER:
        write_atomic(directory.steer, "yes\n")
    return True


def _encode(message: Message) -> bytes:
    """Two lines: the text as a JSON string in ASCII, which hooks pass on as it is; the rest."""
    import json

    rest = {"size": size(message.text)} | msgspec.to_builtins(message)
    text = json.dumps(rest.pop("text"))
    return text.encode() + b"\n" + msgspec.json.encode(rest) + b"\n"


def size(text: str) -> int:
    """Its length as agent CLIs count it: UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def read(path: Path) -> Message | None:
    """The message in `path`; None where it has just been moved away.

    Raises:
        StateError: the file is damaged.

    """
    data = read_guarded(path)
    if data is None:
        return None
    text, _, rest = data.partition(b"\n")
    try:
        envelope = msgspec.json.decode(rest, type=dict[str, object])
        return msgspec.convert(envelope | {"text": msgspec.json.decode(text)}, Message)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise StateError(f"'{path}' is damaged ({error}): remove it") from error


def messages(directory: SessionDir, place: Place) -> list[Message]:
    """Those in `place`, in the order in which the agent is to get them: urgent ones first."""
    return list(each(directory, place))


def each(directory: SessionDir, place: Place) -> Iterator[Message]:
    """The same, each read when its turn comes: there may be a thousand, and only one be needed."""
    for name in sorted(_names(directory, place), key=_rank):
        if message := read(directory.queue / place / name):
            yield message


def _rank(name: str) -> tuple[int, str]:
    return _RANK[Mode(name.rpartition(".")[2])], name


_RANK = {Mode.URGENT: 0, Mode.IMPORTANT: 1, Mode.STEER: 2, Mode.SEQUENTIAL: 2}


def _names(directory: SessionDir, place: Place) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(e.name for e in (directory.queue / place).iterdir() if NAME.fullmatch(e.name))
    return []


def is_empty(directory: SessionDir) -> bool:
    """Whether nothing waits and nothing is under way."""
    return not (_names(directory, Place.WAITING) or _names(directory, Place.HANDED))


def count(directory: SessionDir, place: Place) -> int:
    """How many messages are in `place`; none of them is read."""
    return len(_names(directory, place))


def place(directory: SessionDir, ident: str) -> Place | None:
    """Where the message of this id is; None for one that is unknown."""
    # In the order in which it moves: so it cannot slip past between two looks.
    return next((p for p in Place if any(_of(directory, p, ident))), None)


def _of(directory: SessionDir, place: Place, ident: str) -> Iterator[Path]:
    return (directory.queue / place).glob(f"*-{ident}.*")


def move(directory: SessionDir, message: Message, source: Place, target: Place) -> bool:
    """Move a message on; False where it is not in `source` any more."""
    queue = directory.queue
    try:
        (queue / source / message.name).rename(queue / target / message.name)
    except FileNotFoundError:
        return False
    return True


def withdraw(directory: SessionDir, ident: str) -> bool:
    """Take a message back that nobody has handed to the agent; False where it is too late."""
    for path in _of(directory, Place.WAITING, ident):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
            return True
    return False


def accept(directory: SessionDir, ident: str) -> None:
    """Note that the agent has the message; its hooks do the same."""
    ensure_private_dir(directory.accepted)
    create_exclusive(directory.accepted / ident)


def is_accepted(directory: SessionDir, ident: str) -> bool:
    """Whether the agent, or what it has written down, has confirmed the message."""
    return (directory.accepted / ident).exists()


def accepted_at(directory: SessionDir, ident: str) -> float | None:
    """When the agent got the message, seconds since 1970; None where it has not, or long ago."""
    for path in (directory.accepted / ident, *_of(directory, Place.DONE, ident)):
        with contextlib.suppress(FileNotFoundError):
            return path.stat().st_mtime
    # Settled between the two looks.
    return next((p.stat().st_mtime for p in _of(directory, Place.DONE, ident)), None)


def settle(directory: SessionDir, message: Message) -> None:
    """Put a confirmed message away, and forget the oldest of those."""
    with contextlib.suppress(FileNotFoundError):  # its file is as old as its receipt
        at = accepted_at(directory, message.id) or time.time()
        os.utime(directory.queue / Place.HANDED / message.name, (at, at))
    move(directory, message, Place.HANDED, Place.DONE)
    (directory.accepted / message.id).unlink(missing_ok=True)
    for name in _names(directory, Place.DONE)[:-KEPT]:
        (directory.queue / Place.DONE / name).unlink(missing_ok=True)


def tidy(directory: SessionDir) -> None:
    """Clear what killed writers have left, and the steer mark once none of those waits."""
    abandoned = just_before(time.time() - 60)
    for path in (directory.queue / "tmp").glob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime_ns < abandoned:
                path.unlink()
    if not any(name.endswith(Mode.STEER) for name in _names(directory, Place.WAITING)):
        directory.steer.unlink(missing_ok=True)
