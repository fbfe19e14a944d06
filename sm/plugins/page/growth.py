"""Wakes as soon as a file of a folder is written, without a look in between.

Where the kernel does not tell, such as on a network's file system, only the time wakes.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from types import TracebackType
from typing import Self

from sm.plugins.page.written import Written


class Growth:
    """Watcher of writes in a folder. `is_told`: the kernel reports them."""

    def __init__(self, folder: Path) -> None:
        """Watch nothing yet."""
        self._folder = folder
        self._news = asyncio.Event()
        self.is_told = False

    def __enter__(self) -> Self:
        self._written = Written()
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
