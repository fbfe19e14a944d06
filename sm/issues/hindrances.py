"""Hindrances that keep hosts from having sessions, and that only a person can remove.

A runner that knows of such things is a `Watcher`. It says what it heard at the last tick.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from sm.base.errors import SmError
from sm.issues import runners
from sm.issues.placements import list_placements
from sm.sessions.project import Project
from sm.store.files import list_names


class Hindrance(Struct, frozen=True):
    """Hindrance of a host. `key` stays the same until it is over, and no other has it.

    `text` is one sentence, `command` says more of it here. `since` is in seconds since 1970, 0 if
    unknown.
    """

    key: str
    text: str
    command: str
    since: float = 0.0


@runtime_checkable
class Watcher(Protocol):
    """Runner that knows what keeps its hosts from having sessions."""

    def list_hindrances(self, project: Project) -> Sequence[Hindrance]:
        """Return what is known from files: no host is asked."""


def list_hindrances(project: Project) -> list[Hindrance]:
    """Return the hindrances of all runners that the project names or uses; mostly none."""
    return list(_list_all(project))


def _list_all(project: Project) -> Iterator[Hindrance]:
    for name in _list_runners(project):
        try:
            runner = runners.load_runner(name)
            if isinstance(runner, Watcher):
                yield from runner.list_hindrances(project)
        except SmError:  # a tick says what is wrong with it
            continue


def _list_runners(project: Project) -> dict[str, None]:
    directory = project.root.project(project.name)
    placed = list_placements(directory) if list_names(directory.placements) else []
    named = runners.list_runners(project.settings)
    return dict.fromkeys((*named, *(one.runner for one in placed)))
