"""Counters of requests to forges: the quota ledger has the last day by hour, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sm.plugins.forges.web.ledger import Count, Hour
from sm.plugins.metrics.facts import Asked

Counts = dict[str, Count]
"""Counts by purpose."""


class RequestCounts:
    """Counts of what was sent since a day before the first look, which never become less."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self._hours: dict[tuple[str, float], Counts] = {}
        self._over: dict[str, Counts] = {}
        """Counts of hours that the ledger has forgotten."""

    def add(self, project: str, hours: Iterable[Hour]) -> None:
        """Take what the ledger has now."""
        now = {(project, hour.start): _add_up(hour) for hour in hours}
        for key in [one for one in self._hours if one[0] == project and one not in now]:
            self._over[project] = _join(self._over.get(project, {}), self._hours.pop(key))
        self._hours |= now

    def list_counts(self, name: Callable[[str], str]) -> Iterator[Asked]:
        """List what was sent by project and purpose; `name` says how a purpose is called."""
        sums = {project: dict(counts) for project, counts in self._over.items()}
        for (project, _), counts in self._hours.items():
            sums[project] = _join(sums.get(project, {}), counts)
        for project, counts in sums.items():
            for purpose, one in counts.items():
                results = {
                    "answered": max(0, one.requests - one.unchanged - one.failed),
                    "unchanged": one.unchanged,
                    "failed": one.failed,
                }
                yield Asked(project, name(purpose), results, one.points)


def _add_up(hour: Hour) -> Counts:
    """Add up what was sent in an hour, for one session or for all."""
    found = dict(hour.counts)
    for counts in hour.sessions.values():
        found = _join(found, counts)
    return found


def _join(first: Counts, second: Counts) -> Counts:
    names = dict.fromkeys((*first, *second))
    return {one: first.get(one, Count()).plus(second.get(one, Count())) for one in names}
