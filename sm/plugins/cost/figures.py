"""What a session has cost, beside it in `sm status`, in its story, and over HTTP.

It is read from the sums alone: nothing is read on, and no price is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from sm.config.schema import MachineSettings
from sm.plugins.cost.display import format_cost, tell_cost
from sm.plugins.cost.ledger.entries import Ledger, open_ledger
from sm.plugins.cost.ledger.sums import (
    Sum,
    read_sums_by_agent,
    read_sums_of_issues,
    read_sums_of_sessions,
)
from sm.plugins.cost.settings import find_ledger
from sm.store import sqlite_file
from sm.views.figures import Figure, Figures, Subject


def read(settings: MachineSettings, subjects: Sequence[Subject]) -> Mapping[str, Figure]:
    """What each issue has cost so far in all its sessions; without an issue, the session."""
    path = find_ledger(settings)
    if not sqlite_file.is_there(path):
        return {}
    with open_ledger(path) as ledger:
        return {name: _make_figure(one) for name, one in _find(ledger, subjects)}


def _find(ledger: Ledger, subjects: Sequence[Subject]) -> Iterator[tuple[str, Sum]]:
    issues = read_sums_of_issues(ledger, {(one.project, one.issue) for one in subjects})
    sessions = read_sums_of_sessions(ledger, {one.session for one in subjects if not one.issue})
    for one in subjects:
        found = issues.get((one.project, one.issue)) if one.issue else sessions.get(one.session)
        if found:
            yield one.session, found


def _make_figure(one: Sum) -> Figure:
    return Figure(format_cost(one), msgspec.to_builtins(one))


def tell(settings: MachineSettings, subject: Subject) -> Sequence[str]:
    """Return the same as a sentence, by kind of agent if there are several."""
    path = find_ledger(settings)
    if not sqlite_file.is_there(path):
        return ()
    with open_ledger(path) as ledger:
        found = read_sums_by_agent(ledger, subject.project, subject.issue, subject.session)
    return (f"cost: {tell_cost(found)}",) if found else ()


FIGURES = Figures("Cost", read, tell)
