"""Listing of entries: which there are, in which order, and which one is selected. Pure.

An entry keeps its place while the program is open: what is new comes to the end, and what is over
stays where it was. Only the person arranges the list again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, structs

from sm.views.open_need import OpenNeed
from sm.views.session_row import SessionRow


class ListEntry(Struct, frozen=True):
    """A session, or a need without a session; `over` says how it has ended, '' if it has not."""

    key: str
    row: SessionRow | None = None
    need: OpenNeed | None = None
    over: str = ""

    @property
    def needs_person(self) -> bool:
        """Whether a person is needed for it now."""
        return self.need is not None and not self.over

    @property
    def name(self) -> str:
        """Name of the session or need; '' for what concerns the machine."""
        if self.row:
            return self.row.name
        return (self.need.name or self.need.project) if self.need else ""

    @property
    def title(self) -> str:
        """Title of the session or need."""
        return self.row.title if self.row else self.need.title if self.need else ""


GONE = "over"
SETTLED = "settled"


def make_entries(rows: Iterable[SessionRow], needs: Iterable[OpenNeed]) -> list[ListEntry]:
    """Make an entry for each session, and for each need that no session has: needs come first."""
    listed = list(rows)
    ranks = {need.key: rank for rank, need in enumerate(needs)}
    of_sessions = {row.need.key for row in listed if row.need}
    alone = [ListEntry(f"need {one.key}", need=one) for one in needs if one.key not in of_sessions]
    found = [*alone, *(ListEntry(row.id, row, row.need) for row in listed)]
    last = len(ranks)
    return sorted(found, key=lambda one: ranks.get(one.need.key, last) if one.need else last)


class Listing:
    """Entries that a person sees, in their order, and the selected one."""

    def __init__(self) -> None:
        self.entries: list[ListEntry] = []
        self.only_needs = False
        self.selected = ""
        self._latest: list[ListEntry] = []

    def update(self, latest: Sequence[ListEntry], outcomes: Callable[[str], str]) -> None:
        """Take in what is known now; `outcomes` says how a session ended that is gone."""
        known = {entry.key: entry for entry in latest}
        self._latest = list(latest)
        kept = [known.get(one.key) or _end(one, outcomes) for one in self.entries]
        there = {one.key for one in kept}
        self.entries = [*kept, *(one for one in latest if one.key not in there)]
        self._keep_selection(0)

    def arrange(self) -> None:
        """Order what is known now: first what needs a person; what is over goes."""
        at = self.position
        self.entries = list(self._latest)
        self._keep_selection(at)

    @property
    def is_arranged(self) -> bool:
        """Whether the order is the one that `arrange` would give it."""
        return [one.key for one in self.entries] == [one.key for one in self._latest]

    def switch_needs(self) -> None:
        """Show only what needs a person, or all again.

        A selected entry that needs nobody would stay in the list: the next that does is selected.
        """
        current = self.current
        self.only_needs = not self.only_needs
        if self.only_needs and current and not current.needs_person:
            at = self.entries.index(current)
            others = (*self.entries[at:], *self.entries[:at])
            wanted = next((one for one in others if one.needs_person), None)
            self.selected = wanted.key if wanted else current.key

    def _keep_selection(self, at: int) -> None:
        """Keep the same entry selected; if it is gone, select the one in its place."""
        shown = self.shown
        if not any(one.key == self.selected for one in shown):
            self.selected = shown[min(at, len(shown) - 1)].key if shown else ""

    @property
    def shown(self) -> list[ListEntry]:
        """The entries of the list. The selected one stays until the selection moves."""
        if not self.only_needs:
            return self.entries
        return [one for one in self.entries if one.needs_person or one.key == self.selected]

    @property
    def position(self) -> int:
        """Index of the selected entry among those that are shown."""
        keys = [one.key for one in self.shown]
        return keys.index(self.selected) if self.selected in keys else 0

    def list_above(self) -> list[str]:
        """List the keys down to the selected entry: as long as they stay, nothing moves."""
        return [one.key for one in self.shown[: self.position + 1]]

    @property
    def current(self) -> ListEntry | None:
        """The selected entry; None if the list is empty."""
        return next((one for one in self.shown if one.key == self.selected), None)

    def move(self, by: int) -> None:
        """Select the entry that far down; at an end of the list it stays there."""
        shown = self.shown
        if shown:
            self.selected = shown[max(0, min(self.position + by, len(shown) - 1))].key

    def find(self, text: str, *, step: int = 1, here: bool = False) -> bool:
        """Select the next entry that has `text` (`step` -1: the one before); say whether there is.

        With `here` the selected one counts as well.
        """
        shown, at = self.shown, self.position
        first = 0 if here else 1
        for distance in range(first, len(shown) + first):
            one = shown[(at + step * distance) % len(shown)]
            if text.casefold() in _searched(one):
                self.selected = one.key
                return True
        return False


def _end(entry: ListEntry, outcomes: Callable[[str], str]) -> ListEntry:
    if entry.over:
        return entry
    over = (outcomes(entry.row.id) or GONE) if entry.row else SETTLED
    return structs.replace(entry, over=over)


def _searched(entry: ListEntry) -> str:
    row, need = entry.row, entry.need
    words = [entry.name, entry.title, need.text if need else ""]
    if row:
        words += [row.id, str(row.state), row.waits_for, row.problem, row.words]
    return "\n".join(words).casefold()
