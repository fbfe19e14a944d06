"""What keeps hosts from having sessions, as far as only a person can change it.

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
    """One of them. `key` stays the same until it is over, and no other has it.

    `text` is one sentence, `command` says more of it here. `since` is in seconds since 1970, 0 if
    that is not known.
    """

    key: str
    text: str
    command: str
    since: float = 0.0


@runtime_checkable
class Watcher(Protocol):
    """A runner that knows what keeps its hosts from having sessions."""

    def list_hindrances(self, project: Project) -> Sequence[Hindrance]:
        """Return what is known of it from files: no host is asked."""


def list_hindrances(project: Project) -> list[Hindrance]:
    """Return those of all runners that the project names, or has sessions of; mostly none."""
    return list(_list_all(project))


def _list_all(project: Project) -> Iterator[Hindrance]:
    for name in _list_runners(project):
        try:
            runner = runners.load_runner(name)
            if isinstance(runner, Watcher):
                yield from runner.list_hindrances(project)
        except SmError:  # what is wrong with it, a tick says
            continue


def _list_runners(project: Project) -> dict[str, None]:
    directory = project.root.project(project.name)
    placed = list_placements(directory) if list_names(directory.placements) else []
    named = runners.list_runners(project.settings)
    return dict.fromkeys((*named, *(one.runner for one in placed)))
