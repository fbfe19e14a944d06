"""Reads in threads, so that no key waits: when something is read, and what becomes of it."""

from __future__ import annotations

import time

from sm.base.errors import SmError
from sm.plugins.top.acts import find_place
from sm.plugins.top.feed import LOOK_S, Seen
from sm.plugins.top.listing import make_entries
from sm.plugins.top.story import Nearby, measure_log, read_nearby
from sm.plugins.top.view import Ask, TopPage, View

AGES_S, OLD_AGES_S = 1.0, 5.0
"""Seconds between two looks at ages; the second where all of them are told in minutes."""
MINUTE_S = 60.0
STILL_S = 1.0
"""Seconds without effect for keys after the list has moved under the selection."""
THERE_S = 3.0
"""Seconds between two looks at a session elsewhere that is seen from near."""


class Reading(View):
    """Follows what happens, and the session that is seen from near."""

    _is_reading = False
    _is_reading_near = False
    _log_size = -1
    _near_at = 0.0
    _aged_at = 0.0
    _shifted_at = 0.0

    def on_mount(self) -> None:
        """Begin to read."""
        if self.seen:  # what stands there already
            self._take(self.seen, is_first=True)
        else:
            self.show_all()
        self._tick()
        self.set_interval(LOOK_S, self._tick)

    @property
    def has_shifted(self) -> bool:
        """Whether the selected entry has moved so lately that a key may be meant for another."""
        return self._shifted_at > 0 and time.monotonic() < self._shifted_at + STILL_S

    def _tick(self) -> None:
        """Start reads of what has changed, and draw what has become older."""
        now = time.monotonic()
        if not self._is_reading and self.feed.is_due():
            self._is_reading = True
            self.run_worker(self._read, thread=True, group="feed")
        if self.near and not self._is_reading_near and self._is_near_old(self.near, now):
            self.read_near()
        if now >= self._aged_at:
            young_from = time.time() - MINUTE_S
            rows = self.seen.rows if self.seen else ()
            is_all_old = all(row.state_since < young_from for row in rows)
            self._aged_at = now + (OLD_AGES_S if is_all_old else AGES_S)
            self.draw()

    def _is_near_old(self, near: Nearby, now: float) -> bool:
        """Say whether its terminal has shown more; one elsewhere is asked now and then."""
        if near.host:
            return now >= self._near_at + THERE_S
        return measure_log(near) != self._log_size

    def _read(self) -> None:
        """Read, in a thread, what has changed."""
        try:
            seen = self.feed.read()
        except (SmError, OSError, ValueError) as error:
            why = error.message if isinstance(error, SmError) else str(error)
            self.call_from_thread(self._fail, why)
        else:
            self.call_from_thread(self._take_next, seen)

    def _fail(self, why: str) -> None:
        self._is_reading = False
        self.tell(f"cannot be read: {why}", "bold red")

    def _take_next(self, seen: Seen) -> None:
        self._is_reading = False
        self._take(seen, is_first=self.seen is None)

    def _take(self, seen: Seen, *, is_first: bool) -> None:
        self.seen = seen
        above = self.listing.list_above()
        self.listing.update(make_entries(seen.rows, seen.needs), self.feed.find_outcome)
        if not is_first and self.listing.list_above() != above:
            self._shifted_at = time.monotonic()
        if is_first:
            self.listing.arrange()
        if self.near and self.near.key in seen.changed:
            self.read_near()
        self.show_all()

    def read_near(self) -> None:
        """Start a read of the session that is seen from near."""
        entry = self.listing.current
        if entry is None or entry.row is None or self._is_reading_near:
            return
        self._is_reading_near = True
        name, is_peek = entry.row.id, self.page is not TopPage.SESSION

        def read() -> None:
            place = find_place(self.root, name, self.feed.projects)
            near = read_nearby(place, self.root, is_peek=is_peek)
            self.call_from_thread(self._take_near, near)

        self.run_worker(read, thread=True, group="near")

    def _take_near(self, near: Nearby) -> None:
        self._is_reading_near, self._near_at = False, time.monotonic()
        entry = self.listing.current
        looks_near = self.page is TopPage.SESSION or self.ask is Ask.ACT
        if not looks_near or entry is None:
            self.near = None
        elif entry.key != near.key or (near.is_peek and self.page is TopPage.SESSION):
            self.near = None
            self.read_near()
        else:
            self.near, self._log_size = near, measure_log(near)
        self.show_all()
