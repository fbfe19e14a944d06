"""Sees which sessions have changed without an event: files that hooks and others have written.

A session on another machine writes no file here: its row is looked at.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from sm.base.errors import SmError
from sm.plugins.page.board_reader import BoardReader
from sm.plugins.page.inotify import WatchedFolders
from sm.store.paths import Root, SessionDir
from sm.views.session_row import SessionRow

Stamps = dict[str, tuple[int, ...]]

LOOK_S = 3.0
"""Seconds between two looks at the files of all sessions, unless these are many."""
LOOKS_PART = 1000
"""Denominator of the part of a processor that looks take at most: one in so many."""
THERE_PART = 100
"""Denominator of the part of the time that looks at other machines take at most."""
STILL_S = 15.0
"""Seconds between two looks while the kernel says that nothing is written."""

_ANY = SessionDir(Path())
FOLDERS = tuple(map(str, (_ANY.path, _ANY.queue / "new", _ANY.queue / "done")))
WATCHED = (*FOLDERS, *map(str, (_ANY.state, _ANY.usage)))
"""Files in a session's directory that change without an event: most are renamed into a folder."""


class SessionFiles:
    """Files of all sessions. They are looked at only if something was written there."""

    def __init__(self, root: Root) -> None:
        """Look at nothing yet."""
        self._root = root
        self._stamps: Stamps = {}
        self._next = self._latest = 0.0
        self._is_complete = True

    def __enter__(self) -> Self:
        self._written = WatchedFolders()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self._written.close()

    def is_due(self) -> bool:
        """Say whether to look at them now. Once it has said so, they have to be looked at."""
        now = time.monotonic()
        return now >= self._next and (now >= self._latest or self._written.take())

    def look(self) -> set[str]:
        """Look at them. Return the sessions that are not as they were at the last look."""
        begun = time.thread_time()
        before, self._stamps = self._stamps, stamp_files(self._root)
        touched = find_touched(before, self._stamps)
        is_told = self._watch(touched)
        rest_s = max(LOOK_S, (time.thread_time() - begun) * LOOKS_PART)
        self._next = time.monotonic() + rest_s
        # What a new session has written before it was watched is seen by one look more.
        may_rest = is_told and not touched
        self._latest = self._next + (max(0.0, STILL_S - rest_s) if may_rest else 0.0)
        return touched

    def _watch(self, names: set[str]) -> bool:
        """Watch the folders of these sessions, too. Return whether the kernel tells of all."""
        for name in names:
            for folder in FOLDERS:
                path = f"{self._root.sessions}/{name}/{folder}"
                if not self._written.add(path) and os.path.exists(path):  # noqa: PTH110
                    self._is_complete = False  # the user watches as many as are allowed
        return self._written.add(str(self._root.sessions)) and self._is_complete


def stamp_files(root: Root) -> Stamps:
    """Return when the files of each session that change without an event were written last."""
    folder = str(root.sessions)
    try:
        names = os.listdir(folder)  # noqa: PTH208 - looked at all the time, so without a Path
    except OSError:
        return {}
    return {name: tuple(_stamp(f"{folder}/{name}/{file}") for file in WATCHED) for name in names}


def _stamp(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - as above
    except OSError:
        return 0


def find_touched(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    """Find the sessions that are not as they were."""
    names = before.keys() | after.keys()
    return {name for name in names if before.get(name) != after.get(name)}


class RowsThere:
    """The rows of sessions elsewhere, as they were at the last look."""

    def __init__(self, looks: BoardReader) -> None:
        """Look at nothing yet."""
        self._looks = looks
        self._rows: dict[str, SessionRow] = {}
        self._next = 0.0

    def is_due(self) -> bool:
        """Say whether to look at them now."""
        return time.monotonic() >= self._next

    def look(self) -> set[str]:
        """Look at them. Return the sessions that are not as they were at the last look."""
        begun = time.monotonic()
        before, self._rows = self._rows, self._read()
        now = time.monotonic()
        self._next = now + max(LOOK_S, (now - begun) * THERE_PART)
        return find_touched(before, self._rows)

    def _read(self) -> dict[str, SessionRow]:
        try:
            return self._looks.read_there()
        except SmError:  # whoever asks for the page is told
            return {}
