"""The process that has the channels to all hosts that are in use: `sm host link`.

Commands come and go, and a login by ssh takes as long as a whole command. So one process keeps the
channels open, and commands reach it by a socket: each sends one `LinkRequest` and reads one
`LinkReply`. A channel that nobody has used for a while is closed; with the last one the process
ends, and whoever comes next starts another one.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

from sm.helper.lines import WireError, decode_line, encode_line
from sm.plugins.hosts import wire
from sm.plugins.hosts.folder import LinkFiles, open_folder, open_plugin_folder
from sm.plugins.hosts.ssh import link
from sm.plugins.hosts.ssh.client import LinkReply, LinkRequest
from sm.plugins.hosts.ssh.link import Link
from sm.store.files import discard
from sm.store.paths import Root

LOOK_S = 1.0
AT_ONCE = 256
"""Connections of ssh that are opened side by side: one to a silent host takes a thread for long."""


class Links:
    """The links of a state root, by the names of their hosts."""

    def __init__(self, root: Root, files: LinkFiles) -> None:
        """Begin without links."""
        self.root, self.files = root, files
        self.links: dict[str, Link] = {}
        self.begun_at = time.monotonic()

    async def serve(self) -> None:
        """Answer commands until there was none for a while."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(AT_ONCE))
        server = await asyncio.start_unix_server(
            self._meet, sock=_bind(self.files), limit=wire.LINE_LIMIT
        )
        async with server:
            while self.links or time.monotonic() < self.begun_at + link.REST_S:
                if not self.files.socket.exists():  # the state has been removed
                    break
                await self._close_unused()
                await asyncio.sleep(LOOK_S)
            discard(self.files.socket)
        await self._close(list(self.links))

    async def _close_unused(self) -> None:
        await self._close([name for name, one in self.links.items() if one.is_at_rest])

    async def _close(self, names: list[str]) -> None:
        closed = [self.links.pop(name).close() for name in names]
        if closed:
            await asyncio.gather(*closed)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            asked = decode_line(line, LinkRequest) if line else None
            reply = await self._find(asked.name).answer_in_time(asked) if asked else LinkReply()
            writer.write(encode_line(reply))
            await writer.drain()
        except (WireError, ValueError, OSError):
            return  # it has gone, or it is none of ours
        finally:
            writer.close()

    def _find(self, name: str) -> Link:
        if name not in self.links:
            self.links[name] = Link(open_folder(self.root, name))
        return self.links[name]


def _bind(files: LinkFiles) -> socket.socket:
    """Listen at the socket, however long its path is (unix(7): 108 bytes)."""
    discard(files.socket)
    folder = os.open(files.path, os.O_RDONLY | os.O_DIRECTORY)
    listening = socket.socket(socket.AF_UNIX)
    try:
        before = os.umask(0o077)
        try:
            listening.bind(f"/proc/self/fd/{folder}/{files.socket.name}")
        finally:
            os.umask(before)
        listening.listen(1024)
    finally:
        os.close(folder)
    return listening


def serve(root: Root) -> None:
    """Serve all hosts until nobody needs one; at once over if another process does."""
    open_plugin_folder(root)
    files = LinkFiles(root)
    with files.helper.take_place() as ours:
        if ours:
            asyncio.run(Links(root, files).serve())
