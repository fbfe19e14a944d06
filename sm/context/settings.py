"""What holds for the context of one session, and how that is changed.

The machine's configuration comes first, then the project's, then the session's own settings.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct, field, structs

from sm.config.schema import (
    ContextMonitor,
    HandoffCycle,
    MachineSettings,
    Percentage,
    ProjectSettings,
)
from sm.context.thresholds import Levels
from sm.errors import SmError, StateError, UsageError
from sm.sessions import machine as machines
from sm.sessions import registry
from sm.sessions.session import AnySession, IssueSession, Session
from sm.sessions.target import Target
from sm.store.files import read_json, write_json
from sm.store.paths import SessionDir

HIGHEST = 95.0
"""The cycle is not raised above this percentage: the agent needs room for the document."""
PARTS = {
    "warning_percentage": "monitor",
    "critical_percentage": "monitor",
    "cycle_percentage": "cycle",
}
"""Setting one of these percentages switches this part on."""

Relaunch = Callable[[int], None]
"""Ends the agent and starts it anew as the launch of this number, unless that is done already."""


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was set for one session alone; None: its project decides."""

    monitor: bool | None = None
    cycle: bool | None = None
    warning_percentage: Percentage | None = None
    critical_percentage: Percentage | None = None
    cycle_percentage: Percentage | None = None
    tell: tuple[Literal["parent", "person"], ...] | None = None


class Policy(Struct, frozen=True):
    """What holds. A shell runs `notify_command` to tell a person something."""

    monitor: ContextMonitor = field(default_factory=ContextMonitor)
    cycle: HandoffCycle = field(default_factory=HandoffCycle)
    notify_command: str = ""

    def levels(self, raised_by: float = 0.0) -> Levels:
        """The thresholds. The cycle begins `raised_by` so many points later."""
        monitor, cycle = self.monitor, self.cycle
        return Levels(
            warning=monitor.warning_percentage if monitor.enabled else None,
            critical=monitor.critical_percentage if monitor.enabled else None,
            cycle=max(cycle.percentage, min(cycle.percentage + raised_by, HIGHEST))
            if cycle.enabled
            else None,
        )


class Rotator(Struct, frozen=True):
    """A session whose context may be replaced, with what holds for it.

    `relaunch` is None for a caller that may not start agents.
    """

    target: Target
    policy: Policy
    relaunch: Relaunch | None = None


def make_rotator(session: Session) -> Rotator:
    """The session with its policy, for a caller that may not start its agent anew.

    Raises:
        UsageError: its configuration cannot be used.

    """
    if isinstance(session, IssueSession):
        project = machines.load_project(session)
        return Rotator(
            project.target(session), make_policy(session, project.config, project.settings)
        )
    found = machines.load_of(session)
    return Rotator(found.target(session), make_policy(session, found.settings))


def read_policy(session: Session) -> Policy:
    """What holds for the session's context now. Its configuration is read anew.

    Raises:
        UsageError: its configuration cannot be used.

    """
    if isinstance(session, IssueSession):
        with contextlib.suppress(SmError):  # its project is gone: the machine's settings hold
            project = machines.load_project(session)
            return make_policy(session, project.config, project.settings)
    return make_policy(session, machines.load_of(session).settings)


def make_policy(
    session: Session, machine: MachineSettings, project: ProjectSettings | None = None
) -> Policy:
    """What holds for a session of that machine and project.

    Settings of its own that are damaged are passed over: else all work on the session would stop.
    """
    base, own = project or machine, Settings()
    with contextlib.suppress(StateError):
        own = read_settings(session.dir)
    monitor = {
        "enabled": own.monitor,
        "warning_percentage": own.warning_percentage,
        "critical_percentage": own.critical_percentage,
        "tell": own.tell,
    }
    cycle = {"enabled": own.cycle, "percentage": own.cycle_percentage}
    return Policy(
        monitor=structs.replace(base.context_monitor, **_given(monitor)),
        cycle=structs.replace(base.handoff_cycle, **_given(cycle)),
        notify_command=machine.notify_command,
    )


def _given(values: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in values.items() if value is not None}


def read_settings(directory: SessionDir) -> Settings:
    """What was set for the session alone.

    Raises:
        StateError: the file is damaged.

    """
    return read_json(directory.context_settings, Settings) or Settings()


def save_settings(directory: SessionDir, value: Settings) -> None:
    """Keep what was set for the session alone."""
    write_json(directory.context_settings, value, durable=True)


def switch(session: AnySession, *, on: bool, values: Mapping[str, object]) -> None:
    """Switch monitor and cycle on or off; with `values`, by keys of `Settings`, only those parts.

    Raises:
        UsageError: the warning would come after the critical percentage.

    """
    try:
        before = read_settings(session.dir)
    except StateError:
        before = Settings()  # a damaged file is written anew
    if values and on:
        switched = {PARTS[key]: True for key in values if key in PARTS}
    else:
        switched = dict.fromkeys(("monitor", "cycle"), on)
    after = structs.replace(before, **(switched | dict(values)))
    _check(session, after)
    save_settings(session.dir, after)
    registry.poke(session.dir)


def _check(session: AnySession, after: Settings) -> None:
    base = read_policy(session).monitor
    warning = after.warning_percentage or base.warning_percentage
    critical = after.critical_percentage or base.critical_percentage
    if warning > critical:
        raise UsageError(
            f"a warning at {warning}% would come after what is critical at {critical}%: "
            "set both, with --warning and --critical"
        )
