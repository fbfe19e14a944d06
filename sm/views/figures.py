"""Figures of sessions that plugins know, such as what each has cost.

A plugin has `Figures` among its parts of the kind `figures`. `sm status` has a column for them,
`sm trace` says them at its end, and programs get them in JSON, by the part's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from sm.base import plugin
from sm.base.errors import SmError
from sm.base.plugin import describe
from sm.config.schema import MachineSettings


class Subject(NamedTuple):
    """The session that a figure is of. `issue` is 0, and `project` '', of one without an issue."""

    session: str
    project: str = ""
    issue: int = 0


class Figure(Struct, frozen=True):
    """What a plugin says of a session: `shown` to people, in a cell; `values` to programs."""

    shown: str
    values: Mapping[str, Any] = {}


class Figures(NamedTuple):
    """What a plugin knows of sessions; both functions read what is there, and change nothing.

    `read` is asked once for all sessions of a table, and returns the figures of those that have
    any, by session; it answers within milliseconds. `tell` has sentences for the end of a session's
    story, which may be over. `header` stands above the column.
    """

    header: str
    read: Callable[[MachineSettings, Sequence[Subject]], Mapping[str, Figure]]
    tell: Callable[[MachineSettings, Subject], Sequence[str]]


OfSession = Mapping[str, Figure]
"""The figures of a session, by the names of the parts."""
NO_FIGURES: OfSession = {}


def list_headers() -> dict[str, str]:
    """What stands above each column of figures, by the name of the part."""
    return {name: figures.header for name, figures, _ in _load()}


def read_figures(
    settings: MachineSettings, subjects: Sequence[Subject], report: Callable[[SmError], None]
) -> dict[str, dict[str, Figure]]:
    """The figures of these sessions, by session; `report` is told what could not be read."""
    found: dict[str, dict[str, Figure]] = {}
    for name, figures, whose in _load() if subjects else ():
        try:
            read = figures.read(settings, subjects)
        except Exception as error:  # whatever is wrong with a plugin, all else is shown
            report(SmError(f"plugin '{whose}' has no figures: {describe(error)}"))
            continue
        for session, figure in read.items():
            found.setdefault(session, {})[name] = figure
    return found


def tell_figures(settings: MachineSettings, subject: Subject) -> Iterator[str]:
    """What is said of a session at the end of its story."""
    for _, figures, whose in _load():
        try:
            yield from figures.tell(settings, subject)
        except Exception as error:  # as above
            yield f"plugin '{whose}' has no figures: {describe(error)}"


def _load() -> Iterator[tuple[str, Figures, str]]:
    """Each part by its name, and whose it is; `sm doctor` names one that cannot be loaded."""
    parts = plugin.list_parts("figures")
    for name, figures in plugin.load_parts("figures"):
        yield name, figures, parts[name].plugin
