"""Settings of one session: the configuration, and what was set for the session alone."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field, structs

from sm.base.errors import StateError
from sm.config.schema import ContextMonitor, HandoffCycle, MachineSettings, ProjectSettings
from sm.config.section import Percentage
from sm.store.files import read_json, write_json
from sm.store.paths import SessionDir


class OwnSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings of one session alone; None: its project decides."""

    monitor: bool | None = None
    cycle: bool | None = None
    warning_percentage: Percentage | None = None
    critical_percentage: Percentage | None = None
    cycle_percentage: Percentage | None = None
    tell: tuple[Literal["parent", "person"], ...] | None = None


class Settings(Struct, frozen=True):
    """Settings in force. A shell runs `notify_command` to tell a person something."""

    monitor: ContextMonitor = field(default_factory=ContextMonitor)
    cycle: HandoffCycle = field(default_factory=HandoffCycle)
    notify_command: str = ""


def combine(
    directory: SessionDir, machine: MachineSettings, project: ProjectSettings | None = None
) -> Settings:
    """Return what holds for a session of that machine and project.

    The machine's settings come first, then the project's, then the session's own. Damaged settings
    of its own are passed over: else all work on the session would stop.
    """
    base, own = project or machine, OwnSettings()
    with contextlib.suppress(StateError):
        own = read_own(directory)
    monitor = {
        "enabled": own.monitor,
        "warning_percentage": own.warning_percentage,
        "critical_percentage": own.critical_percentage,
        "tell": own.tell,
    }
    cycle = {"enabled": own.cycle, "percentage": own.cycle_percentage}
    return Settings(
        monitor=structs.replace(base.context_monitor, **_leave_out_unset(monitor)),
        cycle=structs.replace(base.handoff_cycle, **_leave_out_unset(cycle)),
        notify_command=machine.notify_command,
    )


def _leave_out_unset(values: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in values.items() if value is not None}


def read_own(directory: SessionDir) -> OwnSettings:
    """Return what was set for the session alone.

    Raises:
        StateError: the file is damaged.

    """
    return read_json(directory.context_settings, OwnSettings) or OwnSettings()


def save_own(directory: SessionDir, value: OwnSettings) -> None:
    """Keep what was set for the session alone."""
    write_json(directory.context_settings, value, durable=True)
