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
from sm.base.issue_id import IssueId
from sm.base.plugin import describe
from sm.config.schema import MachineSettings


class Subject(NamedTuple):
    """Session that a figure is about. Without an issue `issue` is 0, and `project` ''."""

    session: str
    project: str = ""
    issue: IssueId = 0


class Figure(Struct, frozen=True):
    """Figure of a session, by a plugin: `shown` to people, in a cell; `values` to programs."""

    shown: str
    values: Mapping[str, Any] = {}


class Figures(NamedTuple):
    """Source of figures, in a plugin; both functions read what is there, and change nothing."""

    header: str
    read: Callable[[MachineSettings, Sequence[Subject]], Mapping[str, Figure]]
    tell: Callable[[MachineSettings, Subject], Sequence[str]]


OfSession = Mapping[str, Figure]
"""Figures of a session, by the names of the parts."""
NO_FIGURES: OfSession = {}


def list_headers() -> dict[str, str]:
    """Return the header of each column of figures, by the name of the part."""
    return {name: figures.header for name, figures, _ in _load()}


def read_figures(
    settings: MachineSettings, subjects: Sequence[Subject], report: Callable[[SmError], None]
) -> dict[str, dict[str, Figure]]:
    """Read the figures of these sessions, by session; `report` is told what could not be read."""
    found: dict[str, dict[str, Figure]] = {}
    for name, figures, whose in _load() if subjects else ():
        try:
            read = figures.read(settings, subjects)
        except Exception as error:  # if a plugin is broken, all else is shown
            report(SmError(f"plugin '{whose}' has no figures: {describe(error)}"))
            continue
        for session, figure in read.items():
            found.setdefault(session, {})[name] = figure
    return found


def tell_figures(settings: MachineSettings, subject: Subject) -> Iterator[str]:
    """Yield the sentences at the end of a session's story."""
    for _, figures, whose in _load():
        try:
            yield from figures.tell(settings, subject)
        except Exception as error:  # as above
            yield f"plugin '{whose}' has no figures: {describe(error)}"


def _load() -> Iterator[tuple[str, Figures, str]]:
    """Yield each part's name, the part, its plugin; `sm doctor` names one that cannot be loaded."""
    parts = plugin.list_parts("figures")
    for name, figures in plugin.load_parts("figures"):
        yield name, figures, parts[name].plugin
