"""Dispatch of issues to other machines, as a tick of dev-poll sees it.

A plugin has a `Dispatcher` among its parts of the kind `dispatchers`. The session there is one of
this house: its attempt is in the claim on the remote, and is checked before each act.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, cast

from sm.adapters.forge.model import Issue
from sm.base import plugin
from sm.issues.look.snapshot import Snapshot
from sm.sessions.project import Project


class Away(Protocol):
    """Work of a project on other machines, for one tick. Lines are for people, as a tick's are."""

    def tend(self, is_paused: Callable[[str], bool], *, dry_run: bool) -> Iterator[str]:
        """Follow all sessions elsewhere, and do what is due; yield a line for each thing done.

        `is_paused` says whether a person wants nothing to begin in the session of that id.
        """

    def divide(self, issues: list[Issue]) -> tuple[list[Issue], list[Issue]]:
        """Return the issues for this machine, and those for others that nobody has yet."""

    def place(self, issue: Issue, *, dry_run: bool) -> Iterator[str]:
        """Claim and begin an issue elsewhere, if there is a free place.

        Raises:
            SmError: it is not known which places are free.

        """

    def finish(self) -> Iterator[str]:
        """Wait for what this tick has begun; yield a line for each; keep what is known."""


class Dispatcher(Protocol):
    """Part that has issues worked on by other machines."""

    def survey(self, project: Project, seen: Snapshot, *, hears_wishes: bool) -> Away | None:
        """Return the project's work elsewhere; None, at once, if there is none and will be none.

        `hears_wishes`: another tick comes as soon as a machine wishes for a newer look.
        """


def survey(project: Project, seen: Snapshot, *, hears_wishes: bool) -> list[Away]:
    """Return the work elsewhere that each dispatcher has of the project; mostly none."""
    parts = (cast("Dispatcher", part) for _, part in plugin.load_parts("dispatchers"))
    found = (part.survey(project, seen, hears_wishes=hears_wishes) for part in parts)
    return [away for away in found if away is not None]
