"""A tmux client of our own in a pty: it shows bytes, and has no say in any size.

Measured with tmux 3.2, 3.3a, 3.5a and 3.7c: a client with the flag `ignore-size` is ignored only
while another one has a say. Alone, it gives the window its own size, read-only or not (`attach -r`
stands for both flags). So its pty has the size of the window at each moment, and the rows of the
status line.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import signal
import subprocess
import termios
from typing import Annotated

from anyio import CancelScope, to_thread
from msgspec import Meta, Struct

from sm.adapters.tmux import Tmux, check_session, join_commands, select_plain_environment

CHUNK = 64 * 1024
"""Bytes that are taken from the pty at once; it is not read while a browser takes none."""
KINDS = ("-T", "RGB")
"""Abilities of a browser's terminal beyond its TERM: all colours."""
TERM = "xterm-256color"
LARGEST = 1000
LEAVES_S = 2.0
"""Time that a process may take to leave before it is killed, in seconds."""

FACTS = (
    "#{client_tty} #{session_name} #{window_width} #{window_height} #{status} #{status-position}"
)


class Size(Struct, frozen=True):
    """Columns and rows of a client, and how many of its last rows are tmux's own (`below`).

    The numbers of another machine are bounded, or a browser would make room for them.
    """

    columns: Annotated[int, Meta(ge=1, le=LARGEST)]
    rows: Annotated[int, Meta(ge=1, le=LARGEST)]
    below: Annotated[int, Meta(ge=0, le=LARGEST)] = 0


class Client:
    """`tmux attach` in a pty, for one browser. For one event loop."""

    def __init__(self, tmux: Tmux, session: str, size: Size, *, types: bool) -> None:
        """Begin to show the session. `types`: keys reach the agent; without it none are sent."""
        self.types, self.size, self._leaves = types, size, False
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._fd, slave = pty.openpty()
        try:
            self.tty = os.ttyname(slave)
            _resize(self._fd, size)
            os.set_blocking(self._fd, False)
            self._process = subprocess.Popen(  # noqa: S603 - tmux alone
                spell_attach(tmux, session, types=types),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env=select_plain_environment() | {"TERM": TERM},
                start_new_session=True,
            )
        except BaseException:
            os.close(self._fd)
            raise
        finally:
            os.close(slave)

    async def read(self) -> bytes:
        """Read what it has shown since the last call; b'' when it has ended, or is to leave."""
        loop = asyncio.get_running_loop()
        if self.is_leaving():
            return b""
        loop.add_reader(self._fd, self._news.set)
        try:
            await self._news.wait()
        finally:
            loop.remove_reader(self._fd)
        if self.is_leaving():
            return b""
        self._news.clear()
        return self._take()

    def _take(self) -> bytes:
        shown = bytearray()
        with contextlib.suppress(OSError):  # EIO: it has ended; EAGAIN: that was all
            while len(shown) < CHUNK and (data := os.read(self._fd, CHUNK)):
                shown += data
        return bytes(shown)

    async def type(self, keys: bytes) -> None:
        """Send keys, as fast as tmux takes them; none if it only looks."""
        loop = asyncio.get_running_loop()
        while self.types and keys and not self.is_leaving():
            self._room.clear()
            loop.add_writer(self._fd, self._room.set)
            try:
                await self._room.wait()
            finally:
                loop.remove_writer(self._fd)
            if self.is_leaving():
                return
            try:
                keys = keys[os.write(self._fd, keys) :]
            except BlockingIOError:
                continue
            except OSError:  # it has ended
                return

    def resize(self, size: Size) -> None:
        """Give it another size."""
        self.size = size
        _resize(self._fd, size)
        self._process.send_signal(signal.SIGWINCH)  # the pty is not its controlling terminal

    def is_leaving(self) -> bool:
        """Say whether it is about to end."""
        return self._leaves

    def leave(self) -> None:
        """Wake whoever waits for it, as it is about to end."""
        self._leaves = True
        self._news.set()
        self._room.set()

    async def end(self) -> None:
        """End it, whatever happens to the caller meanwhile."""
        self.leave()
        with CancelScope(shield=True):
            await asyncio.sleep(0)  # whoever waited for the pty has let go of it
            os.close(self._fd)
            await end_process(self._process)


def _resize(fd: int, size: Size) -> None:
    termios.tcsetwinsize(fd, (size.rows, size.columns))


def spell_attach(tmux: Tmux, session: str, *, types: bool) -> list[str]:
    """Spell a client's command; it changes neither the window's size nor the environment (-E)."""
    program, *rest = tmux.attach_argv(session)
    flags = "ignore-size" if types else "read-only,ignore-size"
    return [program, *KINDS, *rest, "-E", "-f", flags]


def find_size(tmux: Tmux, session: str) -> Size:
    """Find the size that a client of the session needs.

    Raises:
        TmuxError, TmuxBusyError: there is no such session, or tmux did not answer.

    """
    facts = FACTS.partition(" ")[2]
    target = ("-t", f"={check_session(session)}:")
    _, size = _parse(tmux.command(*join_commands(("display-message", "-p", *target, facts))))
    return size


def find_size_of(tmux: Tmux, client: str, session: str) -> Size | None:
    """Find the size that the client on that tty needs now; None if it shows the session no more.

    Raises:
        TmuxError, TmuxBusyError: tmux did not answer.

    """
    listed = tmux.command(*join_commands(("list-clients", "-F", FACTS)))
    for line in listed.splitlines():
        tty, _, facts = line.partition(" ")
        if tty == client:
            shown, size = _parse(facts)
            return size if shown == session else None
    return None


def _parse(facts: str) -> tuple[str, Size]:
    session, width, height, status, position = facts.split()
    lines = {"off": 0, "on": 1}.get(status) if not status.isdigit() else int(status)
    below = lines or 0
    return session, Size(int(width), int(height) + below, below if position == "bottom" else 0)


async def end_process(process: subprocess.Popen[bytes]) -> None:
    """End the process, and wait until it has ended."""
    process.terminate()
    await to_thread.run_sync(_reap, process)


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(LEAVES_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
