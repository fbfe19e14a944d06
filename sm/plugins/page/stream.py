"""Stream to browsers of what has changed: which sessions, and how far the journal is.

The journal is followed as long as anybody listens, once for all. A change without an event, such as
how full a context is, is seen by the files that hooks write. A stream says only that; the page then
asks for these rows, by the position that it knows itself, so a missed message costs nothing.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator

from msgspec import Struct, json
from sse_starlette import ServerSentEvent

from sm.plugins.page.board_reader import BoardReader, list_changed
from sm.plugins.page.inotify import Growth
from sm.plugins.page.session_files import RowsThere, SessionFiles
from sm.store import journal

LOOK_S = 0.2
"""Seconds between two looks at the journal's size, if the kernel does not report writes."""
TOLD_LOOK_S = 1.0
"""Seconds between two looks if the kernel does: a journal elsewhere may grow all the same."""
PAUSE_S = 0.05
"""Seconds between two messages of a stream, so that a page has time for something else."""
ALIVE_S = 15
"""Seconds between two heartbeats of a stream. A page that hears none for 40 s says so."""
AGAIN_MS = 1000
"""Time that a browser waits before it connects again, in milliseconds."""
MOST = 64
"""Streams at the same time. A browser has one for all its tabs."""


class Changed(Struct, frozen=True):
    """Sessions that have changed, '' for more than that, and the journal's position then."""

    position: int
    sessions: tuple[str, ...]


class _Listener:
    """News that one stream still has to tell: one message, however slowly its browser reads."""

    def __init__(self) -> None:
        self._sessions: set[str] = set()
        self._position = 0
        self._has_news = False
        self._told = asyncio.Event()

    def tell(self, changed: Changed) -> None:
        """Add this change to the news."""
        self._sessions |= set(changed.sessions)
        self._position = changed.position
        self._has_news = True
        self._told.set()

    def beat(self) -> None:
        """Have the listener say that the stream is at work."""
        self._told.set()

    async def wait(self) -> Changed:
        """Wait for the next change; `BEAT` if nothing has changed."""
        await self._told.wait()
        self._told.clear()
        if not self._has_news:
            return BEAT
        self._has_news = False
        sessions, self._sessions = self._sessions, set()
        return Changed(self._position, tuple(sorted(sessions)))


BEAT = Changed(-1, ())
"""Heartbeat: nothing has changed, and the stream is at work."""


class Stream:
    """Looks for changes while anybody listens, and says now and then that it still does."""

    def __init__(self, looks: BoardReader) -> None:
        """Begin without a listener."""
        self._looks, self._root = looks, looks.machine.root
        self._listeners: set[_Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._looks_on = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another listener."""
        return len(self._listeners) >= MOST

    async def listen(self, since: int | None) -> AsyncGenerator[ServerSentEvent, None]:
        """Yield what changes from now on; first, what has changed behind the position `since`."""
        if self.is_full:  # others were faster
            return
        listener = _Listener()
        self._listeners.add(listener)
        if self._task is None or self._task.done():
            self._looks_on.clear()
            self._task = asyncio.create_task(self._run())
        try:
            await self._looks_on.wait()  # whatever changes behind the first word is seen
            position = journal.find_size(self._root.journal) if since is None else since
            sessions, end = await asyncio.to_thread(list_changed, self._looks.machine, position)
            yield _word(Changed(end, tuple(sorted(sessions))))
            while True:
                yield _word(await listener.wait())
        finally:
            self._listeners.discard(listener)

    async def _run(self) -> None:
        try:
            await self._look_on()
        finally:
            self._looks_on.set()

    async def _look_on(self) -> None:
        path = str(self._root.journal)
        with Growth(self._root.private) as growth, SessionFiles(self._root) as files:
            size, position = _measure(path), journal.find_size(self._root.journal)
            configuration = self._looks.stamp_configuration()
            await asyncio.to_thread(files.look)
            there = RowsThere(self._looks)
            self._looks_on.set()
            beat_at = time.monotonic() + ALIVE_S
            while self._listeners:
                # From here and not from a timer of its own: a beat says that changes are seen.
                if time.monotonic() >= beat_at:
                    beat_at = time.monotonic() + ALIVE_S
                    for listener in self._listeners:
                        listener.beat()
                await growth.wait(TOLD_LOOK_S if growth.is_told else LOOK_S)
                changed: set[str] = set()
                before, size = size, _measure(path)
                if size != before:
                    changed, position = await asyncio.to_thread(
                        list_changed, self._looks.machine, position
                    )
                if files.is_due() and (touched := await asyncio.to_thread(files.look)):
                    changed |= touched
                    self._looks.spoil()
                before_it, configuration = configuration, self._looks.stamp_configuration()
                if configuration != before_it:
                    changed.add("")
                if there.is_due():
                    changed |= await asyncio.to_thread(there.look)
                if changed:
                    told = Changed(position, tuple(sorted(changed)))
                    for listener in self._listeners:
                        listener.tell(told)
                    await asyncio.sleep(PAUSE_S)


def _word(changed: Changed) -> ServerSentEvent:
    if changed is BEAT:
        return ServerSentEvent("1", event="beat")
    return ServerSentEvent(
        json.encode(changed).decode(), event="changed", id=str(changed.position), retry=AGAIN_MS
    )


def _measure(path: str) -> int:
    """Return the bytes of a file, 0 if there is none: a look that costs next to nothing."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - a Path takes three times as long
    except OSError:
        return 0
