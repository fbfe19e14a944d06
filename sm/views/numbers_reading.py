"""Reads the numbers of a machine: what was told since the last look, and where sessions stand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator

from sm.base.errors import SmError
from sm.base.issue_id import IssueId
from sm.issues.look import phase_file
from sm.sessions import registry
from sm.store import journal
from sm.store.events import Event
from sm.store.paths import Root
from sm.views.numbers import DayNumbers, Numbers


class NumbersReader:
    """Reader that keeps the sums of the journal, so that a look reads only what is new."""

    def __init__(self, root: Root, hear: Callable[[Event], object] | None = None) -> None:
        """Begin with nothing read; `hear` is given each event once, too."""
        self._root, self._hear = root, hear
        self._lock = threading.Lock()
        self._journal = journal.Reader(root.journal)
        self._numbers = Numbers()

    def read(self, projects: Collection[str], since: str = "") -> list[DayNumbers]:
        """Return the days from that day on, also of projects that are not configured any more.

        Raises:
            StateError: the journal is no plain file of ours.

        """
        names = {name.replace(".", "_"): name for name in projects}
        with self._lock:
            # Whatever happens while it is read belongs to the next look.
            now = time.time()
            self._numbers.take(self._read_on(), now)
            self._numbers.reach(now, dict(self._list_phases(names)))
            return self._numbers.list_days(since, lambda name: names.get(name, name))

    def _read_on(self) -> Iterator[Event]:
        for event in self._journal.read_on():
            if self._hear:
                self._hear(event)
            yield event

    @property
    def first_at(self) -> float:
        """Time of the first known event, in seconds since 1970; 0 if there is none."""
        return self._numbers.first_at

    @property
    def is_cut(self) -> bool:
        """Whether the journal was begun again, so that events before the first may be gone."""
        return journal.name_previous(self._root.journal).exists()

    def _list_phases(self, names: dict[str, str]) -> Iterator[tuple[str, tuple[str, float]]]:
        """Yield each existing session, with the phase that its agent has written last, and when."""
        there = set(registry.list_session_names(self._root))
        for session, project, issue in self._numbers.list_open():
            if session in there:
                yield session, self._read_phase(names.get(project, project), issue)

    def _read_phase(self, project: str, issue: IssueId) -> tuple[str, float]:
        """Read the phase file: the phase, and since when; an empty one if it cannot be read."""
        try:
            write = phase_file.read(self._root, project, issue)
        except SmError:
            return "", 0.0
        return (write.text, round(write.at, 3)) if write else ("", 0.0)
