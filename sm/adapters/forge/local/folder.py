"""The forge's folder: numbers, one file each, changed whole and under one lock.

forge.yaml         format, and where the repository is
issues/0001.md     issues
pulls/0006.md      pull requests, out of the same run of numbers
checks/COMMIT/     what CI said of a commit
.number            the last number given out
.lock              held while anything is changed
.merging           held while a pull request is merged
stamp              touched by every change: its mtime is what monitors watch
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.local.document import ForgeFile, render
from sm.adapters.forge.local.parse import parse
from sm.base.act_guard import before_act
from sm.base.errors import StateError, UsageError
from sm.base.foreign import NUMBER_LIMIT, read_number, shorten
from sm.store.files import open_guarded, read_guarded, write_atomic
from sm.store.lock import hold

T = TypeVar("T")
Kind = Literal["issues", "pulls"]
FRESH_NS = 100_000_000
"""Age in nanoseconds below which a file may be written again within a tick of the clock."""
MERGING_S = 60.0
"""Time that a merge waits for others, in seconds."""
KINDS: tuple[Kind, ...] = ("issues", "pulls")
NOUN = {"issues": "issue", "pulls": "pull request"}
A_NOUN = {"issues": "an issue", "pulls": "a pull request"}

FILE_NAME = re.compile(r"(?!0000)([0-9]{4}|[1-9][0-9]{4,8})\.md")
SIZE_LIMIT = 64 * 1024 * 1024
"""Limit of one file, in bytes; many comments of a megabyte each fit."""


class ForgeFolder:
    """Files of a forge. Whatever was read is kept as long as the file does not change."""

    def __init__(self, path: Path) -> None:
        """Open the folder `path`, where `forge.yaml` is."""
        self.path = path
        self._folders = {kind: str(path / kind) for kind in KINDS}
        self._read: dict[str, tuple[tuple[int, ...], ForgeFile]] = {}

    @property
    def checks(self) -> Path:
        """Folder of CI's results, with a folder for each commit."""
        return self.path / "checks"

    @property
    def stamp(self) -> Path:
        """File whose mtime tells that something has changed."""
        return self.path / "stamp"

    def touch(self) -> None:
        """Tell those who watch that something has changed."""
        with self._there(), open_guarded(self.stamp, os.O_WRONLY | os.O_CREAT) as fd:
            now = time.time_ns()  # the kernel's clock stands still for some milliseconds
            os.utime(fd, ns=(now, now))

    def file(self, kind: Kind, number: int) -> Path:
        """Return the path of that issue or pull request."""
        return Path(self.name(kind, number))

    def name(self, kind: Kind, number: int) -> str:
        """Return the file's name as errors show it."""
        return f"{self._folders[kind]}/{number:04d}.md"

    def kind_of(self, number: int) -> Kind:
        """Return whether `number` is an issue or a pull request.

        Raises:
            NotFoundError: it is neither.

        """
        for kind in KINDS:
            if self.file(kind, number).exists():
                return kind
        raise NotFoundError(f"there is no issue or pull request {number} in '{self.path}'")

    def numbers(self, kind: Kind) -> list[int]:
        """List the numbers that there are, in order."""
        matches = map(FILE_NAME.fullmatch, self._names(kind))
        return sorted(int(found[1]) for found in matches if found)

    def read(self, kind: Kind, number: int) -> ForgeFile:
        """Return that issue or pull request.

        Raises:
            NotFoundError: there is none of that number.
            StateError: the file cannot be read or understood.

        """
        path = self.name(kind, number)
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            raise self._missing(kind, number) from None
        version = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
        if (known := self._read.get(path)) and known[0] == version:
            return known[1]
        document = parse(path, self.raw(kind, number), round(found.st_mtime, 3))
        if time.time_ns() - found.st_mtime_ns > FRESH_NS:
            self._read[path] = (version, document)
        return document

    def raw(self, kind: Kind, number: int) -> bytes:
        """Return the file as it is."""
        path = self.file(kind, number)
        data = read_guarded(path, SIZE_LIMIT + 1)
        if data is None:
            raise self._missing(kind, number)
        if len(data) > SIZE_LIMIT:
            raise StateError(f"'{path}' is larger than {SIZE_LIMIT} bytes: shorten it")
        return data

    def each(self, kind: Kind, read: Callable[[int], T]) -> tuple[list[T], list[str]]:
        """Apply `read` to every number; return the results, and the errors of the bad files."""
        good: list[T] = []
        problems = [
            f"'{self.path / kind}/{_show_name(name)}' is not named like '0007.md': rename it"
            for name in self._names(kind)
            if name.endswith(".md") and not name.startswith(".") and not FILE_NAME.fullmatch(name)
        ]
        for number in self.numbers(kind):
            try:
                good.append(read(number))
            except NotFoundError:
                continue  # removed since we looked
            except StateError as error:
                problems.append(error.message)
        return good, problems

    def add(self, kind: Kind, document: ForgeFile) -> int:
        """Keep a new document; return its number, which no other had before."""
        with self.changing():
            return self.add_locked(kind, document)

    def add_locked(self, kind: Kind, document: ForgeFile) -> int:
        """Do as `add`, for a caller that holds the lock already."""
        said = (read_guarded(self.path / ".number", 20) or b"").decode("ascii", "replace")
        there = [number for each in KINDS for number in self.numbers(each)]
        number = max([read_number(said.strip()) or 0, *there]) + 1
        if number > NUMBER_LIMIT:
            raise StateError(f"'{self.path}' has a file of the last number there is: rename it")
        write_atomic(self.path / ".number", f"{number}\n")
        self._write(kind, number, ForgeFile({"number": number} | document.front, document.body))
        return number

    def update(
        self, kind: Kind, number: int, change: Callable[[ForgeFile], ForgeFile]
    ) -> ForgeFile:
        """Replace a document by what `change` makes of it; return the new one.

        Nothing is written if nothing changes.
        """
        with self.changing():
            before = self.read(kind, number)
            after = change(before)
            if after != before or after.unsettled != before.unsettled:
                self._write(kind, number, after)
            return after

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the forge's lock."""
        with self._there(), hold(self.path / ".lock"):
            yield

    @contextmanager
    def merging(self) -> Iterator[None]:
        """Hold the lock for merges: of those that move a base at once, all but one begin again."""
        with self._there(), hold(self.path / ".merging", timeout_s=MERGING_S):
            yield

    @contextmanager
    def _there(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            raise StateError(f"cannot use the forge '{self.path}': {reason}") from error

    def fingerprint(self) -> str:
        """Return a text that differs whenever a file or the stamp may have changed.

        The files are those of issues and pull requests.
        """
        digest = hashlib.sha256()
        with self._there():
            for kind in KINDS:
                for name in self._names(kind):
                    digest.update(self._mark(f"{self._folders[kind]}/{name}"))
            digest.update(self._mark(str(self.stamp)))
        return digest.hexdigest()

    def _mark(self, path: str) -> bytes:
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return b"gone"
        return f"{path} {found.st_mtime_ns} {found.st_size}\n".encode("utf-8", "surrogateescape")

    def _write(self, kind: Kind, number: int, document: ForgeFile) -> None:
        data = render(document)
        if len(data) > SIZE_LIMIT:
            raise UsageError(
                f"{NOUN[kind]} {number} would be larger than {SIZE_LIMIT} bytes: shorten the text"
            )
        path = self.file(kind, number)
        write_atomic(path, data, durable=True, limit=SIZE_LIMIT, at_last=before_act)
        self.touch()

    def _names(self, kind: Kind) -> list[str]:
        try:
            with os.scandir(self.path / kind) as entries:
                return sorted(entry.name for entry in entries)
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            raise StateError(f"cannot read '{self.path / kind}': {reason}") from error

    def _missing(self, kind: Kind, number: int) -> NotFoundError:
        for other in KINDS:
            if other != kind and self.file(other, number).exists():
                return NotFoundError(f"{number} is no {NOUN[kind]}: it is {A_NOUN[other]}")
        return NotFoundError(f"there is no {NOUN[kind]} {number} in '{self.path}'")


def _show_name(name: str) -> str:
    """Return a file's name for a message; bytes that are no text become U+FFFD."""
    return shorten(os.fsencode(name).decode("utf-8", "replace"))
