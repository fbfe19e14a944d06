"""What holds for the context of one session: machine, then project, then the session itself."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field, structs

from sm.config.schema import ContextMonitor, HandoffCycle, Machine, Percentage, Project
from sm.errors import StateError
from sm.store.files import read_json, write_json
from sm.thresholds import Levels

if TYPE_CHECKING:
    from sm.session.registry import Session
    from sm.store.paths import SessionDir

HIGHEST = 95.0
"""The cycle is not raised further: the agent has to have room for the document."""


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody has set for one session alone; None: as its project has it."""

    monitor: bool | None = None
    cycle: bool | None = None
    warning_percentage: Percentage | None = None
    critical_percentage: Percentage | None = None
    cycle_percentage: Percentage | None = None
    tell: tuple[Literal["parent", "person"], ...] | None = None


class Policy(Struct, frozen=True):
    """What holds; `notify_command` is run by a shell for what a person has to know."""

    monitor: ContextMonitor = field(default_factory=ContextMonitor)
    cycle: HandoffCycle = field(default_factory=HandoffCycle)
    notify_command: str = ""

    def levels(self, raised_by: float = 0.0) -> Levels:
        """The thresholds; that of the cycle is `raised_by` so many points."""
        monitor, cycle = self.monitor, self.cycle
        return Levels(
            warning=monitor.warning_percentage if monitor.enabled else None,
            critical=monitor.critical_percentage if monitor.enabled else None,
            cycle=max(cycle.percentage, min(cycle.percentage + raised_by, HIGHEST))
            if cycle.enabled
            else None,
        )


def made(session: Session, machine: Machine, project: Project | None = None) -> Policy:
    """What holds for a session of that machine and project.

    What was set for it alone and is damaged by now is passed over: everything that is done for the
    session would wait for it.
    """
    base, own = project or machine, Settings()
    with contextlib.suppress(StateError):
        own = settings(session.dir)
    monitor = {
        "enabled": own.monitor,
        "warning_percentage": own.warning_percentage,
        "critical_percentage": own.critical_percentage,
        "tell": own.tell,
    }
    cycle = {"enabled": own.cycle, "percentage": own.cycle_percentage}
    return Policy(
        monitor=structs.replace(base.context_monitor, **_set(monitor)),
        cycle=structs.replace(base.handoff_cycle, **_set(cycle)),
        notify_command=machine.notify_command,
    )


def _set(values: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in values.items() if value is not None}


def settings(directory: SessionDir) -> Settings:
    """What was set for the session alone.

    Raises:
        StateError: it is damaged.

    """
    return read_json(directory.context_settings, Settings) or Settings()


def save_settings(directory: SessionDir, value: Settings) -> None:
    """Set it."""
    write_json(directory.context_settings, value, durable=True)
