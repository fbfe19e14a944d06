"""The messages for an agent: a Maildir, in which the folder that a file is in is its state.

`tmp`: being written. `new`: waits. `cur`: handed to the agent, its receipt is awaited.
`done`: the agent has it. Every move is one rename, so of several movers one succeeds, and a
killed one has moved it or not. The hooks of an agent move files as well: `lib/hooks`.

What is damaged goes to `damaged`, where it is in no one's way. `lock` is held while a message of an
id is looked for and put, and while one is moved back: so each id is there once.

While the file `hold` is there, messages wait, but for those whose ids stand in it. The agent's
hooks look at nothing else.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sm.adapters.agent.prompt_text import shorten
from sm.base.decoder import convert
from sm.base.errors import StateError, UsageError
from sm.base.nonce import make_nonce
from sm.base.quotation import take_out
from sm.base.text import utf16_length
from sm.messages.display import summarise
from sm.store import lock
from sm.store.damage import record_damage
from sm.store.files import (
    backdate,
    create_exclusive,
    decode_json,
    discard,
    ensure_private_dir,
    list_names,
    read_guarded,
    sync_dir,
    write_atomic,
)
from sm.store.paths import SessionDir

ID = re.compile(r"[a-z0-9]{8,40}")
NAME = re.compile(r"(\d{19})-([a-z0-9]{8,40})\.(sequential|important|steer|urgent)")

LOCK = "lock"
DAMAGED = "damaged"
KEPT = 500
"""Number of delivered messages that are kept, for senders who ask what became of theirs."""


PERSON = "a person"
"""The source of a message from a shell that is no session's."""


class Mode(StrEnum):
    """When the agent gets a message: see docs/MESSAGES.md."""

    SEQUENTIAL = "sequential"
    IMPORTANT = "important"
    STEER = "steer"
    URGENT = "urgent"


class DamagedError(StateError):
    """What is in a message's place is none: it may be set aside."""


class MessageFolder(StrEnum):
    """Where a message is, by the name of its folder."""

    WAITING = "new"
    HANDED = "cur"
    DONE = "done"


class Message(Struct, frozen=True, kw_only=True):
    """A text for an agent, normalised already. `created_at` in seconds since 1970.

    `sender` is a session's name, '' for a person or sm itself; `notify` the session that is told
    when the turn ends in which the agent got the message. `opens` a context: what follows it makes
    no sense without it.

    `source` is who says it, as people call it: a session's label, 'a person'; '' for sm itself.
    `summary` is what that one has said, in a line, as the text may have a frame of ours.
    """

    id: str
    text: str
    mode: Mode = Mode.SEQUENTIAL
    sender: str = ""
    notify: str = ""
    source: str = ""
    summary: str = ""
    opens: bool = False
    created_at: float = msgspec.field(default_factory=time.time)

    @property
    def name(self) -> str:
        """Its file's name; names sort by age."""
        return f"{int(self.created_at * 1e9):019d}-{self.id}.{self.mode}"

    @property
    def title(self) -> str:
        """What it is, in a line: a text of sm's own says that in its first one."""
        words = self.summary or summarise(self.text)
        return f"From {self.source}: {words}" if self.source else words


def make_id() -> str:
    """A new id, which no other message has had."""
    return make_nonce(8)


def put(
    directory: SessionDir, message: Message, *, at_last: Callable[[], None] = lambda: None
) -> bool:
    """Queue a message; False where one of this id is known already, wherever it is by now.

    It is not queued if `at_last`, which is called right before it is, raises an error.

    Raises:
        UsageError: its id cannot be one.
        StateError: it cannot be written; then it is not queued. Also where the session is gone.

    """
    if not ID.fullmatch(message.id):
        raise UsageError(f"'{message.id}' cannot be a message id: 8 to 40 of a-z, 0-9")
    for folder in ("", "tmp", *MessageFolder):
        ensure_private_dir(directory.queue / folder, parents=False)  # none for what is forgotten
    if find_place(directory, message.id):
        return False
    temporary = directory.queue / "tmp" / f"{message.name}.{make_nonce(4)}"
    data = _encode(directory, message)
    write_atomic(temporary, data, durable=True)  # takes its time: not under the lock
    entered = False
    try:
        entered = _enter(directory, message, temporary, at_last)
    finally:
        if not entered:
            temporary.unlink(missing_ok=True)
    if not entered:
        return False
    if message.mode is Mode.STEER:
        write_atomic(directory.steer, "yes\n")
    return True


def _enter(
    directory: SessionDir, message: Message, written: Path, at_last: Callable[[], None]
) -> bool:
    """Have a written message wait; False if there is one of its id already."""
    waiting = directory.queue / MessageFolder.WAITING
    try:
        with lock.hold(directory.queue / LOCK):
            if find_place(directory, message.id):
                return False
            at_last()
            written.rename(waiting / message.name)
        sync_dir(waiting)
    except FileNotFoundError as error:
        raise StateError(f"cannot queue '{message.id}': its session is gone") from error
    return True


def _encode(directory: SessionDir, message: Message) -> bytes:
    """The text as a JSON string in ASCII, which hooks pass on as it is; the rest in a line.

    A third line is what the hook shows to a person, where the agent CLI does not show the text.
    What is marked with `quotes` is left to us: a hook's words have more weight than those of others
    may have.
    """
    import json

    rest = {"size": utf16_length(message.text)} | msgspec.to_builtins(message)
    if take_out(message.text)[1]:
        rest["quotes"] = True
    lines = [json.dumps(rest.pop("text")).encode(), msgspec.json.encode(rest)]
    if message.mode is Mode.STEER:
        lines.append(json.dumps(phrase(directory, message)).encode())
    return b"\n".join((*lines, b""))


def phrase(directory: SessionDir, message: Message) -> str:
    """What a person is shown of a message that a hook hands over: who says it, and the text."""
    head = f"[sm] From {message.source}:\n" if message.source and not message.sender else ""
    return shorten(head + message.text, make_show_command(directory, message))


def locate_quotes(directory: SessionDir, ident: str) -> Path:
    """The file for what the message or task of this id quotes of others."""
    return directory.quoted / f"{ident}.txt"


def keep_quotes(directory: SessionDir, ident: str, quotes: str) -> None:
    """Write that file, which a line of ours is about to name."""
    ensure_private_dir(directory.quoted, parents=False)
    write_atomic(locate_quotes(directory, ident), f"{quotes}\n")


def make_show_command(directory: SessionDir, message: Message) -> str:
    """The command that prints the text of a message as it was sent."""
    return f"sm queue {directory.path.name} --show {message.id}"


def read(path: Path) -> Message | None:
    """The message in `path`; None where it has just been moved away.

    Raises:
        DamagedError: the file is damaged.

    """
    try:
        data = read_guarded(path)
        if data is None:
            return None
        text, rest, *_ = (*data.split(b"\n", 2), b"")
        fields = decode_json(rest, dict[str, Any], path) | {"text": decode_json(text, str, path)}
        return convert(fields, Message)
    except (StateError, msgspec.ValidationError) as error:
        raise DamagedError(f"message '{path}' is damaged: remove it") from error


def list_messages(directory: SessionDir, place: MessageFolder) -> list[Message]:
    """List the messages in `place` as the agent is to get them: urgent ones first."""
    return list(read_each(directory, place))


def read_each(directory: SessionDir, place: MessageFolder) -> Iterator[Message]:
    """Yield the messages, each read when its turn comes: of a thousand one may be needed.

    A damaged one is set aside, and said so on standard error, once.
    """
    for name in sorted(_names(directory, place), key=_rank):
        if message := _read_intact(directory, directory.queue / place / name):
            yield message


def find(directory: SessionDir, place: MessageFolder, ident: str) -> Message | None:
    """The message of this id, if it is in `place`; no other is read."""
    found = (_read_intact(directory, path) for path in _of(directory, place, ident))
    return next((message for message in found if message), None)


def _read_intact(directory: SessionDir, path: Path) -> Message | None:
    try:
        return read(path)
    except DamagedError:
        from sm.base.output import warn

        aside = ensure_private_dir(directory.queue / DAMAGED, parents=False)
        with contextlib.suppress(FileNotFoundError):  # another process has just done it
            path.rename(aside / path.name)
            moved = f"it is not delivered, and is in '{aside}' now"
            warn(f"message '{path.name}' is damaged: {moved}")
            record_damage(path, f"message '{path}' is damaged: {moved}")
        return None


def list_damaged(directory: SessionDir) -> list[Path]:
    """Messages that no agent can get any more, oldest first."""
    return [directory.queue / DAMAGED / name for name in _names(directory, DAMAGED)]


def _rank(name: str) -> tuple[int, str]:
    return _RANK[Mode(name.rpartition(".")[2])], name


_RANK = {Mode.URGENT: 0, Mode.IMPORTANT: 1, Mode.STEER: 2, Mode.SEQUENTIAL: 2}


def _names(directory: SessionDir, folder: str) -> list[str]:
    entries = list_names(directory.queue / folder)
    return [name for name in entries if NAME.fullmatch(name)]


def is_empty(directory: SessionDir) -> bool:
    """Whether nothing waits and nothing is under way."""
    return not (_names(directory, MessageFolder.WAITING) or _names(directory, MessageFolder.HANDED))


def count(directory: SessionDir, place: MessageFolder) -> int:
    """How many messages are in `place`; none of them is read."""
    return len(_names(directory, place))


def has_mode(directory: SessionDir, mode: Mode) -> bool:
    """Whether a message of this mode waits; none of them is read."""
    return any(name.endswith(f".{mode}") for name in _names(directory, MessageFolder.WAITING))


def find_oldest_at(directory: SessionDir, *places: MessageFolder) -> float | None:
    """When the oldest message in `places` was made, seconds since 1970; none of them is read."""
    oldest = [name for place in places for name in _names(directory, place)[:1]]
    return min((int(name.partition("-")[0]) / 1e9 for name in oldest), default=None)


def find_place(directory: SessionDir, ident: str) -> MessageFolder | None:
    """Where the message of this id is; None for one that is unknown."""
    # In the order in which it moves, on or back: so it cannot slip past between two looks.
    return next(
        (p for p in (*MessageFolder, MessageFolder.WAITING) if any(_of(directory, p, ident))), None
    )


def _of(directory: SessionDir, place: MessageFolder, ident: str) -> Iterator[Path]:
    pattern = f"*-{ident}.*" if ID.fullmatch(ident) else ""
    return (directory.queue / place).glob(pattern) if pattern else iter(())


def move(
    directory: SessionDir, message: Message, source: MessageFolder, target: MessageFolder
) -> bool:
    """Move a message on, or back; False where it is not in `source` any more."""
    queue, order = directory.queue, list(MessageFolder)
    is_back = order.index(target) < order.index(source)
    try:
        with lock.hold(queue / LOCK) if is_back else contextlib.nullcontext():
            (queue / source / message.name).rename(queue / target / message.name)
    except FileNotFoundError:
        return False
    return True


def withdraw(
    directory: SessionDir, ident: str, place: MessageFolder = MessageFolder.WAITING
) -> bool:
    """Take back a message that the agent has not been handed; False where it is too late.

    One that was handed over, in `place` HANDED, only under the delivery lock: see `cancel`.
    """
    for path in _of(directory, place, ident):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
            return True
    return False


def accept(directory: SessionDir, ident: str) -> None:
    """Note that the agent has the message; its hooks do the same."""
    ensure_private_dir(directory.accepted, parents=False)
    create_exclusive(directory.accepted / ident)


def is_accepted(directory: SessionDir, ident: str) -> bool:
    """Whether the agent, or what it has written down, has confirmed the message."""
    return (directory.accepted / ident).exists()


def list_receipts(directory: SessionDir) -> list[str]:
    """The ids of messages whose receipts are still there."""
    return list_names(directory.accepted)


def forget_receipt(directory: SessionDir, ident: str) -> None:
    """Forget that the agent had the message, which it has given back."""
    discard(directory.accepted / ident)


def find_accepted_at(directory: SessionDir, ident: str) -> float | None:
    """When the agent got the message, seconds since 1970; None where it has not, or long ago."""
    for path in (directory.accepted / ident, *_of(directory, MessageFolder.DONE, ident)):
        with contextlib.suppress(OSError):
            return path.lstat().st_mtime
    # Settled between the two looks.
    return next((p.stat().st_mtime for p in _of(directory, MessageFolder.DONE, ident)), None)


def settle(
    directory: SessionDir, message: Message, *, note: Callable[[], None] = lambda: None
) -> None:
    """Put a confirmed message away, and forget the oldest of those.

    Its receipt goes after `note` was called: it stays if this process is killed before that.
    """
    with contextlib.suppress(FileNotFoundError):  # its file is as old as its receipt
        at = find_accepted_at(directory, message.id) or time.time()
        os.utime(directory.queue / MessageFolder.HANDED / message.name, (at, at))
    if move(directory, message, MessageFolder.HANDED, MessageFolder.DONE):
        note()
    forget_receipt(directory, message.id)
    for name in _names(directory, MessageFolder.DONE)[:-KEPT]:
        discard(directory.queue / MessageFolder.DONE / name)
        discard(locate_quotes(directory, name.partition("-")[2].partition(".")[0]))


def tidy(directory: SessionDir) -> None:
    """Clear what killed writers have left, and the steer mark once none of those waits."""
    abandoned = backdate(time.time() - 60)
    for path in (directory.queue / "tmp").glob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.lstat().st_mtime_ns < abandoned:
                discard(path)
    if not has_mode(directory, Mode.STEER):
        discard(directory.steer)
        if has_mode(directory, Mode.STEER):  # it came in between, and its mark went
            write_atomic(directory.steer, "yes\n")


def hold_back(directory: SessionDir, passing: tuple[str, ...] = ()) -> None:
    """Hold every message back but those of the ids `passing`."""
    if directory.hold.is_dir():
        discard(directory.hold)
    write_atomic(directory.hold, f"{' '.join(passing)}\n")


def read_passing_ids(directory: SessionDir) -> tuple[str, ...] | None:
    """Return the ids of messages that pass: none if the file is damaged, None if none is held."""
    try:
        found = read_guarded(directory.hold)
    except StateError:
        return ()
    return None if found is None else tuple(found.decode("ascii", "replace").split())


def passes(directory: SessionDir, ident: str) -> bool:
    """Whether the message of this id may be handed to the agent now."""
    passing = read_passing_ids(directory)
    return passing is None or ident in passing
