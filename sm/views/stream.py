"""Stream of events: those that the journal has, and those that come."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

from msgspec import structs

from sm.store import journal
from sm.store.events import Event, kind_of
from sm.store.files import open_guarded
from sm.views.event_words import tell

BLOCK = 256 * 1024


def make_json(event: Event) -> dict[str, object]:
    """Make the event's JSON for programs: every field of its kind, also if empty, and its words."""
    fields = structs.asdict(event)
    return {"kind": str(kind_of(event)), **fields, "words": tell(event)}


def follow_events(
    path: Path, *, since: float, session: str = "", pause: Callable[[], None] | None = None
) -> Iterator[Event]:
    """Yield the events of the journal `path` from `since` (seconds since 1970) on, oldest first.

    With `session`, the events of that one alone. With `pause` it goes on with the events that come,
    and calls `pause` before each look.

    Raises:
        StateError: what is there is no plain file of ours.

    """
    for number, lines in enumerate(_looks(path, pause)):
        # Of what comes, all is wanted, whatever becomes of the clock meanwhile.
        earliest = since if number == 0 else -math.inf
        for event in journal.parse_events(lines, session):
            if event.at >= earliest:
                yield event


def _looks(path: Path, pause: Callable[[], None] | None) -> Iterator[Iterable[bytes]]:
    """Yield the existing lines, then those of each look, also if the journal is begun again."""
    with ExitStack() as files:
        # The newer one is opened first: a journal that is begun again meanwhile leaves no gap.
        current, older = _opened(path, files), _opened(journal.name_previous(path), files)
        if older and current and current.is_at(journal.name_previous(path)):
            older = None
        yield chain(*(file.lines() for file in (older, current) if file))
        is_replaced = False
        while pause:
            pause()
            if current:
                yield current.lines()
            if current and not is_replaced:
                # Another process may still write to a journal that was just put aside, so that is
                # read once more at the next look.
                is_replaced = not current.is_at(path)
                continue
            files.close()
            current, is_replaced = _opened(path, files), False
            if current:
                yield current.lines()


class _StreamFile:
    """Journal that is being read. It is kept open, so its renaming loses nothing."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._position = 0
        self._begun = b""

    def is_at(self, path: Path) -> bool:
        """Whether `path` is this very file."""
        try:
            return os.path.samestat(path.stat(), os.fstat(self._fd))
        except FileNotFoundError:
            return False

    def lines(self) -> Iterator[bytes]:
        """Yield whole lines since the last call; of a file that was cut short, from the start."""
        if os.fstat(self._fd).st_size < self._position:
            self._position, self._begun = 0, b""
        while data := os.pread(self._fd, BLOCK, self._position):
            self._position += len(data)
            *whole, self._begun = (self._begun + data).split(b"\n")
            yield from whole


def _opened(path: Path, files: ExitStack) -> _StreamFile | None:
    try:
        return _StreamFile(files.enter_context(open_guarded(path, os.O_RDONLY)))
    except FileNotFoundError:
        return None
