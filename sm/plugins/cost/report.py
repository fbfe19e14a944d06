"""Sums of the ledger that a person or a program asks for.

A report is read up to the last request. The figure beside a session in `sm status`, in its story
and over HTTP is of the sums alone: nothing is read on, and no price is looked up.
"""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from sm.config.schema import Config, MachineSettings
from sm.plugins.cost.display import format_cost, tell_cost
from sm.plugins.cost.ledger.entries import CostLedger, name_day, open_ledger
from sm.plugins.cost.ledger.nodes import list_unheard as list_unheard
from sm.plugins.cost.ledger.prices import list_notes
from sm.plugins.cost.ledger.sums import (
    Sum,
    SumGroup,
    read_sums,
    read_sums_by_agent,
    read_sums_of_issues,
    read_sums_of_models,
    read_sums_of_sessions,
)
from sm.plugins.cost.settings import find_ledger
from sm.store import sqlite_file
from sm.views.figures import Figure, Figures, Subject

ONE_DAY = datetime.timedelta(days=1)
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def parse_since(text: str) -> str:
    """The first day that is meant, '' for all.

    Raises:
        ValueError: it is neither a day nor a time that has passed since.

    """
    from sm.config import duration

    try:
        if not text or DAY.fullmatch(text):
            return _check_day(text)
        return name_day(time.time() - duration.parse(text))
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(
            "expected a day until today such as 2026-11-28, or a time such as 7d or 12h, "
            f"got {text!r}"
        ) from error


def _check_day(text: str) -> str:
    """The day, if the calendar has it and it is not to come. Another time zone may have tomorrow.

    Raises:
        ValueError: it has not, or it is.

    """
    if text and datetime.date.fromisoformat(text) > datetime.date.today() + ONE_DAY:
        raise ValueError("it is to come")
    return text


def check_project(path: Path, project: str, settings: MachineSettings) -> None:
    """Check that a project is in the configuration, or in the ledger; '' is all.

    Raises:
        ValueError: it is in neither.
        StateError, TemporaryError: as `open_ledger`.

    """
    configured = [one.name for one in settings.projects] if isinstance(settings, Config) else []
    if not project or project in configured:
        return
    known = {one.name for one in read_known(path, [SumGroup.PROJECT])[SumGroup.PROJECT]} - {""}
    if project not in known:
        names = ", ".join(sorted({*known, *configured})) or "none"
        raise ValueError(f"no project {project!r} is known: there is {names}")


def list_price_notes(path: Path, since: str = "", project: str = "") -> list[str]:
    """List what is to be said of the prices in a report."""
    models = [
        one.name for one in read_known(path, [SumGroup.MODEL], since, project)[SumGroup.MODEL]
    ]
    return list(list_notes(models, datetime.date.today()))


def read_report(
    path: Path, by: SumGroup, since: str, project: str, warn: Callable[[str], object]
) -> list[Sum]:
    """The sums of the ledger at `path`; `warn` is told what is not in them."""
    from sm.plugins.cost.ledger.intake import open_current

    if not sqlite_file.is_there(path):
        return []
    with open_current(path, warn) as ledger:
        return read_sums(ledger, by, since=since, project=project)


def read_known(
    path: Path, groups: Iterable[SumGroup], since: str = "", project: str = ""
) -> dict[SumGroup, list[Sum]]:
    """The sums of the ledger as it is: nothing is read on, and no price looked up.

    Raises:
        StateError, TemporaryError: as `open_ledger`.

    """
    if not sqlite_file.is_there(path):
        return {by: [] for by in groups}
    with open_ledger(path) as ledger:
        return {by: read_sums(ledger, by, since=since, project=project) for by in groups}


def read_known_models(path: Path) -> dict[str, list[Sum]]:
    """The sums of each project by model, of the ledger as it is; for errors see `read_known`."""
    if not sqlite_file.is_there(path):
        return {}
    with open_ledger(path) as ledger:
        return read_sums_of_models(ledger)


def read(settings: MachineSettings, subjects: Sequence[Subject]) -> Mapping[str, Figure]:
    """Read what each issue has cost so far in all its sessions; without an issue, the session."""
    path = find_ledger(settings)
    if not sqlite_file.is_there(path):
        return {}
    with open_ledger(path) as ledger:
        return {
            name: Figure(format_cost(one), msgspec.to_builtins(one))
            for name, one in _find(ledger, subjects)
        }


def _find(ledger: CostLedger, subjects: Sequence[Subject]) -> Iterator[tuple[str, Sum]]:
    issues = read_sums_of_issues(ledger, {(one.project, one.issue) for one in subjects})
    sessions = read_sums_of_sessions(ledger, {one.session for one in subjects if not one.issue})
    for one in subjects:
        found = issues.get((one.project, one.issue)) if one.issue else sessions.get(one.session)
        if found:
            yield one.session, found


def tell(settings: MachineSettings, subject: Subject) -> Sequence[str]:
    """Return the same as a sentence, by kind of agent if there are several."""
    path = find_ledger(settings)
    if not sqlite_file.is_there(path):
        return ()
    with open_ledger(path) as ledger:
        found = read_sums_by_agent(ledger, subject.project, subject.issue, subject.session)
    return (f"cost: {tell_cost(found)}",) if found else ()


FIGURES = Figures("Cost", read, tell)
