"""Wakes as soon as a file of a folder is written, without a look in between (inotify(7)).

Where the kernel cannot tell, such as on a network's file system, nothing wakes but the time. Python
has no inotify of its own; what is called here, and the numbers, are those of <sys/inotify.h>.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
from pathlib import Path
from types import TracebackType
from typing import Self

IN_MODIFY, IN_MOVED_TO, IN_CREATE = 0x2, 0x80, 0x100
READ = 64 * 1024


class Growth:
    """Whether anything in the folder was written. `is_told`: the kernel says so."""

    def __init__(self, folder: Path) -> None:
        """Nothing is watched yet."""
        self._folder = folder
        self._fd = -1
        self._news = asyncio.Event()

    @property
    def is_told(self) -> bool:
        """Whether the kernel tells."""
        return self._fd >= 0

    def __enter__(self) -> Self:
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if fd < 0:  # the user has as many as are allowed
            return self
        events = IN_MODIFY | IN_MOVED_TO | IN_CREATE
        if libc.inotify_add_watch(fd, os.fsencode(self._folder), events) < 0:
            os.close(fd)
            return self
        self._fd = fd
        asyncio.get_running_loop().add_reader(fd, self._hear)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        if self.is_told:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, READ)  # which files does not matter
        self._news.set()

    async def wait(self, longest_s: float) -> None:
        """Wait until something was written since the last call, but no longer than that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await self._news.wait()
        self._news.clear()
