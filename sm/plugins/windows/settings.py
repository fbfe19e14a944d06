"""Settings for the usage windows of a subscription."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from sm.config.schema import MachineSettings, ProjectSettings
from sm.config.section import Percentage, Section
from sm.config.shapes import read_section


class WindowLimits(Section, frozen=True):
    """What a subscription gives in five hours and in a week, and how much of it sm leaves alone."""

    hold: Annotated[
        Percentage | None,
        Meta(
            description="from this percentage of a window on nothing new begins, and agents wait "
            "at the end of their turn until its reset; empty: never"
        ),
    ] = None


def read_hold(settings: MachineSettings | ProjectSettings) -> int | None:
    """Return the percentage from which a project, or a machine, holds; None for never."""
    return read_section(settings, WindowLimits).hold
