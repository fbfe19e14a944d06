"""The process that has the channels to all hosts that are in use: `sm host link`.

Commands come and go, and a login by ssh takes as long as a whole command. So one process keeps the
channels open, and commands reach it by a socket: each sends one `Ask` and reads one `Reply`. A
channel that nobody has used for a while is closed; with the last one the process ends, and whoever
comes next starts another one.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

from sm.base.wire import WireError, decode_line, encode_line
from sm.plugins.hosts import wire
from sm.plugins.hosts.folder import LinkPlace, open_folder, open_link_place
from sm.plugins.hosts.ssh.asked import Ask, Reply
from sm.plugins.hosts.ssh.link import Link
from sm.store import lock
from sm.store.files import discard
from sm.store.paths import Root

REST_S = 180.0
"""Without a question, after which a channel is closed; a tick of dev-poll comes more often."""
LOOK_S = 1.0
AT_ONCE = 256
"""Connections of ssh that are opened side by side: one to a silent host takes a thread for long."""


class Line:
    """A link, and who uses it."""

    def __init__(self, link: Link) -> None:
        """Nobody does yet."""
        self.link, self.guests, self.asked_at = link, 0, time.monotonic()

    @property
    def is_at_rest(self) -> bool:
        """Whether nobody has used it for a while."""
        return not self.guests and time.monotonic() >= self.asked_at + REST_S


class Links:
    """The links of a state root, by the names of their hosts."""

    def __init__(self, root: Root, place: LinkPlace) -> None:
        """Nothing is open yet."""
        self.root, self.place = root, place
        self.lines: dict[str, Line] = {}
        self.begun_at = time.monotonic()

    async def serve(self) -> None:
        """Answer commands until there was none for a while."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(AT_ONCE))
        server = await asyncio.start_unix_server(
            self._meet, sock=_bind(self.place), limit=wire.LINE_LIMIT
        )
        async with server:
            while self.lines or time.monotonic() < self.begun_at + REST_S:
                if not self.place.socket.exists():  # the state has been removed
                    break
                await self._close_unused()
                await asyncio.sleep(LOOK_S)
            discard(self.place.socket)
        await self._close(list(self.lines))

    async def _close_unused(self) -> None:
        await self._close([name for name, line in self.lines.items() if line.is_at_rest])

    async def _close(self, names: list[str]) -> None:
        closed = [self.lines.pop(name).link.close() for name in names]
        if closed:
            await asyncio.gather(*closed)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            reply = await self._answer(decode_line(line, Ask)) if line else Reply()
            writer.write(encode_line(reply))
            await writer.drain()
        except (WireError, ValueError, OSError):
            return  # it has gone, or it is none of ours
        finally:
            writer.close()

    async def _answer(self, asked: Ask) -> Reply:
        line = self._find_line(asked.name)
        line.guests += 1
        try:
            return await line.link.answer_in_time(asked)
        finally:
            line.guests -= 1
            line.asked_at = time.monotonic()

    def _find_line(self, name: str) -> Line:
        if name not in self.lines:
            self.lines[name] = Line(Link(open_folder(self.root, name)))
        return self.lines[name]


def _bind(place: LinkPlace) -> socket.socket:
    """Listen at the socket, however long its path is (unix(7): 108 bytes)."""
    discard(place.socket)
    folder = os.open(place.path, os.O_RDONLY | os.O_DIRECTORY)
    listening = socket.socket(socket.AF_UNIX)
    try:
        before = os.umask(0o077)
        try:
            listening.bind(f"/proc/self/fd/{folder}/{place.socket.name}")
        finally:
            os.umask(before)
        listening.listen(1024)
    finally:
        os.close(folder)
    return listening


def serve(root: Root) -> None:
    """Serve all hosts until nobody needs one; at once over if another process does."""
    place = open_link_place(root)
    with lock.try_hold(place.lock) as ours:
        if ours:
            asyncio.run(Links(root, place).serve())
