"""Levels of a session's context: when it is warned of and replaced, and how people change that."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from sm.base.errors import StateError, UsageError
from sm.context.thresholds import Levels
from sm.sessions import registry
from sm.sessions.session import Session
from sm.sessions.settings import OwnSettings, Settings, read_own, save_own

HIGHEST = 95.0
"""The cycle is not raised above this percentage: the agent needs room for the document."""
PARTS = {
    "warning_percentage": "monitor",
    "critical_percentage": "monitor",
    "cycle_percentage": "cycle",
}
"""Setting one of these percentages switches this part on."""


def make_levels(settings: Settings, raised_by: float = 0.0) -> Levels:
    """Make the thresholds. The cycle begins `raised_by` percentage points later."""
    monitor, cycle = settings.monitor, settings.cycle
    return Levels(
        warning=monitor.warning_percentage if monitor.enabled else None,
        critical=monitor.critical_percentage if monitor.enabled else None,
        cycle=max(cycle.percentage, min(cycle.percentage + raised_by, HIGHEST))
        if cycle.enabled
        else None,
    )


def switch(session: Session, *, on: bool, values: Mapping[str, object]) -> None:
    """Switch monitor and cycle on or off; with `values`, by keys of `OwnSettings`, only those.

    The caller holds the session's lock.

    Raises:
        UsageError: the warning would come after the critical percentage.

    """
    save(session, find_switched(session, on=on, values=values))


def save(session: Session, after: OwnSettings) -> None:
    """Have these settings hold from now on."""
    save_own(session.dir, after)
    registry.poke(session.dir)


def find_switched(session: Session, *, on: bool, values: Mapping[str, object]) -> OwnSettings:
    """Return what `switch` sets.

    Raises:
        UsageError: the warning would come after the critical percentage.

    """
    try:
        before = read_own(session.dir)
    except StateError:
        before = OwnSettings()  # a damaged file is written again
    if values and on:
        switched = {PARTS[key]: True for key in values if key in PARTS}
    else:
        switched = dict.fromkeys(("monitor", "cycle"), on)
    after = structs.replace(before, **(switched | dict(values)))
    base = session.read_settings().monitor
    warning = after.warning_percentage or base.warning_percentage
    critical = after.critical_percentage or base.critical_percentage
    if warning > critical:
        raise UsageError(
            f"a warning at {warning}% would come after what is critical at {critical}%: "
            "set both, with --warning and --critical"
        )
    return after
