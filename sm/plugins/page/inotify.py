"""Tells whether something was written in a folder, without a look at its files (inotify(7)).

Python has no inotify of its own. The functions called here, and the numbers, are from
<sys/inotify.h>.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
from pathlib import Path
from types import TracebackType
from typing import Self

IN_MODIFY, IN_ATTRIB, IN_MOVED_FROM, IN_MOVED_TO = 0x2, 0x4, 0x40, 0x80
IN_CREATE, IN_DELETE = 0x100, 0x200
READ = 64 * 1024


class WatchedFolders:
    """Folders that are watched. What is below a folder in them does not count."""

    def __init__(self) -> None:
        """Watch none yet."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        """Descriptor that is readable when something was written; negative if the user has too
        many."""

    def add(self, folder: str) -> bool:
        """Add a folder; once more does no harm. Return whether the kernel tells of it."""
        events = IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE
        added: int = self._libc.inotify_add_watch(self.fd, os.fsencode(folder), events)
        return added >= 0

    def take(self) -> bool:
        """Say whether anything was written since the last call."""
        if self.fd < 0:
            return False
        with contextlib.suppress(BlockingIOError):
            return bool(os.read(self.fd, READ))  # which files does not matter
        return False

    def close(self) -> None:
        """Stop watching."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Growth:
    """Wakes as soon as a file of a folder is written, without a look in between.

    Unless the kernel tells (`is_told`), as on a network's file system, only the time wakes.
    """

    def __init__(self, folder: Path) -> None:
        """Watch nothing yet."""
        self._folder = folder
        self._news = asyncio.Event()
        self.is_told = False

    def __enter__(self) -> Self:
        self._written = WatchedFolders()
        self.is_told = self._written.add(str(self._folder))
        if self.is_told:
            asyncio.get_running_loop().add_reader(self._written.fd, self._hear)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        if self.is_told:
            asyncio.get_running_loop().remove_reader(self._written.fd)
        self._written.close()

    def _hear(self) -> None:
        self._written.take()
        self._news.set()

    async def wait(self, longest_s: float) -> None:
        """Wait until something was written since the last call, but no longer than that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await self._news.wait()
        self._news.clear()
