"""Projects of the configuration, for a watch that reads them again and again.

`dev-poll` reads the configuration at each tick. A watch that kept an earlier one would show what is
no longer so; and if it said nothing about a configuration that cannot be read, all would look well,
while nothing is taken up or restarted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable
from pathlib import Path

from msgspec import Struct

from sm.base.act import run
from sm.base.errors import SmError, UsageError
from sm.base.need import NeedKind
from sm.base.text import one_line
from sm.config.load import list_files, load_any
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.views.open_need import OpenNeed

NEW_S = 10
"""Seconds within which a program has read its configuration and is ready."""

Stamps = tuple[tuple[str, int, int, int], ...]


class Configured(Struct, frozen=True):
    """Configuration as last read. `problem` is why it cannot be read, '' if it can.

    With a problem the machine and its projects are as they were before.
    """

    machine: Machine
    projects: tuple[Project, ...] = ()
    problem: str = ""

    @property
    def need(self) -> OpenNeed | None:
        """Need that the problem makes for a person; None without a problem."""
        if not self.problem:
            return None
        return OpenNeed(
            key="machine:configuration",
            kind=NeedKind.MACHINE,
            text=one_line(f"The configuration cannot be used: {self.problem}"),
            act=run("sm config check"),
        )


class ProjectsReader:
    """Reader that reads the configuration again if a file of it has changed. One thread at a time.

    With `names` it reads these projects alone.
    """

    def __init__(
        self, machine: Machine, projects: Iterable[Project] = (), names: Collection[str] = ()
    ) -> None:
        """Begin with the projects that the caller has read just now."""
        self._source, self._names = machine.source, tuple(names)
        self._last = Configured(machine, tuple(projects))
        self._stamps: Stamps | None = None
        if self._source is not None and self._last.projects and not _is_new(self._source):
            self._stamps = _stamp(self._source)

    @property
    def projects(self) -> tuple[Project, ...]:
        """Projects of the last reading."""
        return self._last.projects

    def stamp(self) -> Stamps:
        """Return a stamp that changes with the files of the configuration."""
        return _stamp(self._source) if self._source is not None else ()

    def has_changed(self) -> bool:
        """Whether the next reading may find another configuration."""
        return self._source is not None and self.stamp() != self._stamps

    def read(self) -> Configured:
        """Return what the configuration says now."""
        if self._source is not None:
            stamps = _stamp(self._source)
            if stamps != self._stamps:
                self._last, self._stamps = self._read_again(self._source), stamps
        return self._last

    def _read_again(self, source: Path) -> Configured:
        before = self._last
        try:
            config = load_any(source, os.environ, Path.cwd())
            machine = Machine(config, config.source)
            _check_place(before.machine, machine)
            projects = [Project(config, one) for one in config.projects]
            if self._names:
                projects = [one for one in projects if one.name in self._names]
                _check_names(self._names, projects)
        except (SmError, OSError) as error:
            why = error.message if isinstance(error, SmError) else str(error)
            return Configured(before.machine, before.projects, why)
        return Configured(machine, tuple(projects))


def _check_place(before: Machine, now: Machine) -> None:
    for name in ("state_root", "tmux_socket"):
        old, new = getattr(before.settings, name), getattr(now.settings, name)
        if old != new:
            raise UsageError(f"{name} is '{new}' now, and was '{old}': start this program again")


def _check_names(names: Collection[str], projects: Collection[Project]) -> None:
    for name in names:
        if not any(one.name == name for one in projects):
            raise UsageError(f"project '{name}' is not in it any more")


def _stamp(source: Path) -> Stamps:
    """Return a stamp that changes with the files of a configuration and with their permissions."""
    try:
        paths = list_files(source) if source.is_dir() else [source]
    except SmError:
        paths = [source]
    return tuple((str(path), *_measure(path)) for path in paths)


def _is_new(source: Path) -> bool:
    """Whether a file may have changed since the caller has read it."""
    changed_ns = max((one[2] for one in _stamp(source)), default=0)
    return changed_ns > time.time_ns() - NEW_S * 10**9


def _measure(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size
