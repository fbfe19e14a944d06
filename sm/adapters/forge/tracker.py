"""Trackers: issues that are in another place than the pull requests, with ids such as `ENG-123`.

`tracker.kind` of a project's configuration names the plugin's module. `sm.adapters.forge.tracked`
makes one forge of a tracker and of the forge with the pull requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, cast

from sm.adapters.forge.model import Batch, authors_in
from sm.adapters.forge.protocol import Issues
from sm.base import plugin

if TYPE_CHECKING:
    from pathlib import Path

    from sm.config.forges import TrackerSettings

STAMP = "stamp"
"""Name of the validator with the times of the signs."""


class Tracker(Protocol):
    """Issues of one project on a tracker.

    It keeps nothing between two calls, as a forge. A subclass has to have `issues` and
    `find_members`; what else is here will do for a tracker that is read as a whole, at no cost.

    The id of an issue is as `sm.base.issue_id` spells it. A comment has a `marker` only if the
    tracker knows that `sm` has written it. Each write may be repeated, as on a forge.
    """

    @property
    def issues(self) -> Issues[str]:
        """Issues of the project."""
        ...

    def find_members(self, authors: Iterable[str]) -> frozenset[str]:
        """Return those of the `authors` whose words may reach an agent."""
        ...

    def observe(self, since: Batch | None = None) -> Batch:
        """Observe every issue; `since` is as for `Forge.observe`. The members are its `writers`."""
        stamp = self._stamp()  # what changes while we read must count as changed since
        found, problems = self.issues.find()
        members = tuple(sorted(self.find_members(authors_in(found, ()))))
        return Batch(tuple(found), (), members, tuple(problems), {STAMP: stamp})

    def is_stale(self, since: Batch) -> bool:
        """Whether it is known to have changed since; no request is sent."""
        return since.validators.get(STAMP) != self._stamp()

    def pause_s(self, sharers: int = 1) -> float:
        """Return the seconds that two observations must be apart; no request is sent."""
        return 0.0

    def signs(self) -> tuple[Path, ...]:
        """List files that get a new time when it changes; none if nothing here shows that."""
        return ()

    def _stamp(self) -> str:
        times = ((sign, sign.stat().st_mtime_ns) for sign in self.signs() if sign.exists())
        return " ".join(f"{sign} {at}" for sign, at in times)


class TrackerOpener(Protocol):
    """Module of a kind of tracker."""

    def open_tracker(self, settings: TrackerSettings, state: Path | None = None) -> Tracker:
        """Open the tracker of a project. `state` is the project's private folder.

        Raises:
            UsageError: the settings lead to no tracker.

        """
        ...

    def find_problems(self, settings: TrackerSettings) -> Iterator[str]:
        """Yield what is wrong with the settings, a line each."""
        ...


def kind_of(settings: TrackerSettings) -> TrackerOpener:
    """Return the module of the kind of tracker that the settings name.

    Raises:
        UsageError: no plugin has it.

    """
    return cast("TrackerOpener", plugin.load_part("trackers", settings.kind))
