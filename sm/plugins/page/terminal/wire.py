"""Protocol of two `sm` about a terminal: lines of JSON over two pipes, each way bounded.

The node says hello first, behind a mark, because a login shell may say something before it. From
then on both say something every few seconds, if only that they are there: a network that is cut
tells nobody, and neither end may wait for the other for ever.
"""

from __future__ import annotations

import asyncio
import os

from msgspec import Struct

from sm.helper.lines import Lines, encode_line
from sm.plugins.page.terminal.words import BrowserWish, TerminalWord

PROTOCOL = 1
"""Version of the protocol: two of different numbers do not understand one another."""
MARK = b"sm-terminal "
"""Mark that begins the line with the hello."""
LINE_LIMIT = 256 * 1024
"""Bytes of a line: all that a client has shown at once, in base64, is less."""
BEAT_S, SILENT_S = 5.0, 15.0
"""Seconds between two signs of life of each end, and seconds of silence after which it counts as
gone."""
CHUNK = 64 * 1024


class TerminalHello(Struct, frozen=True):
    """Greeting of the `sm` that shows the terminal there."""

    protocol: int


class FromNode(Struct, frozen=True, omit_defaults=True):
    """A word, or what the terminal shows; without either, a sign of life."""

    word: TerminalWord | None = None
    shown: bytes = b""


class ToNode(Struct, frozen=True, omit_defaults=True):
    """A word of the browser, or its keys; without either, a sign that somebody looks."""

    wish: BrowserWish | None = None
    keys: bytes = b""


class Pipes:
    """Lines from one pipe or socket, and to another. For one event loop; it closes neither."""

    def __init__(self, source: int, sink: int) -> None:
        """Read from the one and write to the other, without waiting in either."""
        self._source, self._sink, self._leaves = source, sink, False
        self._news, self._room, self._turn = asyncio.Event(), asyncio.Event(), asyncio.Lock()
        self._lines = Lines(LINE_LIMIT)
        for end in (source, sink):
            os.set_blocking(end, False)

    async def read(self) -> bytes:
        """Return the next line, with its end; b'' when there are no more.

        Raises:
            WireError: it is too long.

        """
        while not (line := self._lines.take()):
            if not (data := await self._read_some()):
                return b""
            self._lines.add(data)
        return line

    async def _read_some(self) -> bytes:
        loop = asyncio.get_running_loop()
        while not self._leaves:
            self._news.clear()
            try:
                loop.add_reader(self._source, self._news.set)
                await self._news.wait()
                return os.read(self._source, CHUNK)
            except BlockingIOError:
                continue
            except OSError:
                return b""
            finally:
                loop.remove_reader(self._source)
        return b""

    async def write(self, value: Struct, mark: bytes = b"") -> None:
        """Write a line as fast as it is taken; nothing any more once nobody takes it."""
        loop = asyncio.get_running_loop()
        async with self._turn:  # lines come whole
            rest = memoryview(mark + encode_line(value))
            while rest and not self._leaves:
                self._room.clear()
                try:
                    loop.add_writer(self._sink, self._room.set)
                    await self._room.wait()
                    rest = rest[os.write(self._sink, rest) :]
                except BlockingIOError:
                    continue
                except OSError:
                    self.leave()
                finally:
                    loop.remove_writer(self._sink)

    def leave(self) -> None:
        """Wake whoever waits for a pipe: nothing comes or goes any more."""
        self._leaves = True
        self._news.set()
        self._room.set()
