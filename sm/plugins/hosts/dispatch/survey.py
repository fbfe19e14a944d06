"""Survey of a project's work elsewhere, for a tick of dev-poll."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct

from sm.adapters.forge.model import Issue
from sm.issues import placements, runners
from sm.issues.look.snapshot import Snapshot
from sm.issues.runners import KnownState, Placement, Runner
from sm.plugins.hosts.dispatch.orders import Dispatch
from sm.plugins.hosts.dispatch.rules import REFUSALS
from sm.plugins.hosts.messages import awaited_turns, replies
from sm.sessions.project import Project


class Survey(Struct, dict=True):
    """Knowledge of a tick about a project's work elsewhere: each runner is asked once."""

    project: Project
    seen: Snapshot
    placed: list[Placement]
    asked: tuple[Placement, ...]
    standings: dict[str, KnownState]
    free: dict[str, list[str]]
    dispatch: Dispatch
    hears_wishes: bool = False

    def list_there(self, runner: str, host: str) -> list[Placement]:
        """Return the placements on a host."""
        return [one for one in self.placed if (one.runner, one.host) == (runner, host)]

    def count_hosts(self) -> int:
        """Return how many hosts have sessions of the project."""
        return len({(one.runner, one.host) for one in self.placed})

    def open(self, name: str) -> Runner:
        """Return the runner of that name.

        Raises:
            UsageError: no plugin has it.

        """
        return runners.load_runner(name)

    def divide(self, issues: Iterable[Issue]) -> tuple[list[Issue], list[Issue]]:
        """Return the issues for this machine, and those for others."""
        here, away = list[Issue](), list[Issue]()
        known = {one.issue for one in self.placed}
        for issue in issues:
            runner = runners.choose_runner(self.project.settings, issue.labels)
            if issue.number not in known:
                (here if runner == runners.LOCAL else away).append(issue)
        return here, away

    def take_host(self, runner: str, *, but: str = "") -> str:
        """Take a free place; return its host, '' for none. The place counts as taken from then on.

        Never the host `but`, and none that was asked in vain in this tick.
        """
        if runner not in self.free:
            of_runner = [one for one in self.placed if one.runner == runner]
            self.free[runner] = self.open(runner).list_free(self.project, of_runner)
        free = self.free[runner]
        for host in dict.fromkeys(free):
            if host != but and not self.dispatch.has_in_vain(runner, host):
                free.remove(host)
                return host
        return ""

    @cached_property
    def known(self) -> dict[str, KnownState]:
        """Last known states, from the ticks before."""
        return placements.read_seen(self.project.directory)

    def find_refusal(self, placement: Placement) -> KnownState | None:
        """Return how its host has refused to begin it; None if it did not."""
        known = None if placement.handle else self.known.get(placement.session)
        is_of_it = known and known.host == placement.host
        return known if is_of_it and known and known.standing in REFUSALS else None

    def keep(self, placement: Placement) -> None:
        """Put a placement on record, in the place of an earlier one of its issue."""
        placements.keep(self.project.directory, placement)
        self.note(placement)

    def note(self, placement: Placement) -> None:
        """Add a placement that is on record."""
        self.standings.pop(placement.session, None)  # it was about the earlier record
        self.placed = [one for one in self.placed if one.issue != placement.issue] + [placement]

    def forget(self, placement: Placement) -> None:
        """Remove a placement from the record, and tell the sessions that wait for its session."""
        project, session = self.project, placement.session
        placements.forget(project.directory, placement.issue)
        name = f"{placement.project}#{placement.issue}"
        awaited_turns.tell_gone(project.root, project.directory, session, name)
        replies.forget(project.directory, session)
        self.placed = [one for one in self.placed if one.issue != placement.issue]


def survey(project: Project, seen: Snapshot, *, hears_wishes: bool = False) -> Survey | None:
    """Return what is on record of work elsewhere; None if there is none, as mostly.

    `hears_wishes`: another tick comes as soon as a node wishes for a newer look at the forge.
    """
    placed = placements.list_placements(project.root.project(project.name))
    if not placed and not runners.list_runners(project.settings):
        return None
    return Survey(project, seen, placed, tuple(placed), {}, {}, Dispatch(project), hears_wishes)
