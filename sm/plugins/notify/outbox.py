"""The words that wait for one channel, a file each; in which folder a word is, says how far it is.

| folder | its words |
|---|---|
| `new` | wait to be sent |
| `sending` | are being sent, or were when the notifier died |
| `told` | were sent, or have lost their point; their names say that they need not be put again |

A word goes from one folder to the next by a rename, which needs no room on a full disk. The name is
made of the word's id. `.again` at its end says that a try was cut short, so a person may have been
told before.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from msgspec import Struct, structs

from sm.base.errors import StateError
from sm.plugins.notify.model import AGAIN, HeldWord, Memory
from sm.store.files import (
    discard,
    ensure_private_dir,
    list_names,
    read_json,
    write_atomic,
    write_json,
)
from sm.store.paths import Root, check_name

TOLD_S = 7 * 86400.0
"""Time that a word is remembered after it was told, in seconds."""


class Destination(Struct, frozen=True):
    """A channel of a configuration; `project` is '' for one of the machine."""

    config: str
    project: str
    channel: str

    @property
    def folder(self) -> str:
        """A name for its folder; no other destination has it."""
        whole = "\0".join(structs.astuple(self))
        return f"{self.channel}-{hashlib.sha256(whole.encode()).hexdigest()[:12]}"


class Outbox(Struct, frozen=True):
    """The folder of one destination in a state root."""

    root: Root
    path: Path
    FOLDERS: ClassVar[tuple[str, ...]] = ("new", "sending", "told")

    @property
    def new(self) -> Path:
        """Words that wait."""
        return self.path / "new"

    @property
    def sending(self) -> Path:
        """Words that are being sent."""
        return self.path / "sending"

    @property
    def told(self) -> Path:
        """Words that are done with."""
        return self.path / "told"

    # For whoever has something to tell

    def put(self, word: HeldWord) -> bool:
        """Keep a word until it is sent; False if it was put before.

        Raises:
            StateError: it cannot be written; then it is not there.

        """
        name = hashlib.sha256(word.id.encode()).hexdigest()[:24]
        if self._has(name):
            return False
        write_json(self.new / name, structs.replace(word, name=""), durable=True)
        return True

    def drop_asked(self, session: str, *, but: str = "") -> None:
        """Take back the questions of a session that were not sent yet, but the one of that id."""
        for word in self.list_waiting():
            if word.asked and word.session == session and word.id != but:
                self.move(word, self.new, self.told)

    def drop_all(self, session: str) -> None:
        """Take back the words of a session, also one that is about to be sent."""
        for folder in (self.new, self.sending):  # in the order in which a word goes
            for word in self._read(folder):
                if word.session == session:
                    self.move(word, folder, self.told)

    def _has(self, name: str) -> bool:
        # In the order in which a word goes from folder to folder, so that none slips by.
        folders = (self.new, self.sending, self.told)
        return any((one / f"{name}{tail}").exists() for one in folders for tail in ("", AGAIN))

    # For the notifier

    def list_waiting(self) -> list[HeldWord]:
        """Return the words that wait, the oldest first."""
        return sorted(self._read(self.new), key=lambda word: word.at)

    def list_cut_short(self) -> list[HeldWord]:
        """Return the words whose sending was begun and not noted as done."""
        return sorted(self._read(self.sending), key=lambda word: word.at)

    def is_sending(self, word: HeldWord) -> bool:
        """Say whether a word that was to be sent still is."""
        return (self.sending / word.name).exists()

    def move(self, word: HeldWord, source: Path, target: Path, name: str = "") -> bool:
        """Move a word on; False if it is gone meanwhile.

        Raises:
            StateError: it cannot be moved.

        """
        try:
            (source / word.name).replace(target / (name or word.name))
        except FileNotFoundError:
            return False
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            raise StateError(f"cannot move '{source / word.name}': {reason}") from error
        return True

    def forget_old(self, now: float) -> None:
        """Forget words that were told long ago."""
        for name in list_names(self.told):
            path = self.told / name
            with contextlib.suppress(OSError):
                if now - path.stat().st_ctime > TOLD_S:
                    path.unlink()

    def _read(self, folder: Path) -> Iterator[HeldWord]:
        for name in list_names(folder):
            if name.startswith("."):
                continue
            try:
                word = read_json(folder / name, HeldWord)
            except StateError:  # damaged: it tells nobody anything
                discard(folder / name)
                continue
            if word is not None:
                yield structs.replace(word, name=name)

    # What is remembered

    @property
    def destination(self) -> Destination | None:
        """The channel that it is for; None if that is not known."""
        with contextlib.suppress(StateError):
            return read_json(self.path / "channel.json", Destination)
        return None

    def recall(self) -> Memory:
        """Return what is remembered; nothing if that was lost."""
        if self.path in _unwritten:
            return _unwritten[self.path]
        with contextlib.suppress(StateError):
            return read_json(self._memory, Memory) or Memory()
        return Memory()

    def remember(self, memory: Memory) -> None:
        """Write it down. On a full disk this process alone has it, and it ends with it."""
        try:
            write_json(self._memory, memory)
            _unwritten.pop(self.path, None)
        except StateError:
            _unwritten[self.path] = memory

    @property
    def _memory(self) -> Path:
        return self.path / "memory.json"


_unwritten: dict[Path, Memory] = {}
"""Memories that could not be written; else a failing service would be asked without a pause."""


class Post(Struct, frozen=True):
    """Files of the plugin in a state root."""

    root: Root

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.root.plugins / "notify"

    @property
    def due(self) -> Path:
        """Empty; its time says when something is to be sent. Missing: nothing is."""
        return self.path / "due"

    @property
    def wake(self) -> Path:
        """FIFO: a byte wakes the notifier."""
        return self.path / "wake"

    @property
    def lock(self) -> Path:
        """Held by the notifier as long as it lives."""
        return self.path / "notifier.lock"

    @property
    def log(self) -> Path:
        """Output of the notifier: nothing, unless it has a fault."""
        return self.path / "notifier.log"

    @property
    def heartbeat(self) -> Path:
        """The outcome of the last heartbeat."""
        return self.path / "heartbeat.json"

    @property
    def commanded(self) -> Path:
        """Needs elsewhere that `notify_command` was told of, and when."""
        return self.path / "commanded.json"

    @property
    def channels(self) -> Path:
        """A folder for each destination."""
        return self.path / "channels"

    def open(self, destination: Destination) -> Outbox:
        """Return the outbox of a channel, which is made if it is missing.

        Raises:
            StateError: it cannot be made.

        """
        outbox = self.find(destination)
        if not outbox.told.is_dir():
            for name in Outbox.FOLDERS:
                ensure_private_dir(outbox.path / name)
            write_json(outbox.path / "channel.json", destination)
        return outbox

    def find(self, destination: Destination) -> Outbox:
        """Return the outbox of a channel, which need not be there."""
        check_name(destination.channel, "channel")
        return Outbox(self.root, self.channels / destination.folder)

    def list_all(self) -> list[Outbox]:
        """Return every outbox that there is."""
        names = list_names(self.channels)
        return [Outbox(self.root, self.channels / name) for name in names if name[0] != "."]

    def set_due(self, at: float | None) -> None:
        """Say when something is to be sent next; None for never.

        Raises:
            StateError: it cannot be written.

        """
        if at is None:
            discard(self.due)
        elif self.due.exists():
            os.utime(self.due, (at, at))
        else:
            write_atomic(self.due, "", mtime_ns=int(at * 1e9))

    def read_due(self) -> float | None:
        """Return when something is to be sent next; None for never. One look at one file."""
        try:
            return self.due.stat().st_mtime
        except OSError:
            return None
