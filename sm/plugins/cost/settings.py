"""What can be set about costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from sm.config.schema import MachineSettings
from sm.config.section import Section
from sm.config.shapes import read_section

SESSION = "sm.session"
"""What an agent calls its session when it tells of its requests."""
DEFAULT = "~/.local/share/sm/ledger.db"


class Cost(Section, frozen=True):
    """What agents cost, and where it is written down."""

    ledger: Annotated[
        Path | None,
        Meta(description=f"database of what each request has used; empty: {DEFAULT}"),
    ] = None
    comment: Annotated[
        bool,
        Meta(description="say on the pull request of an issue that is over what it has cost"),
    ] = False
    telemetry: Annotated[
        bool,
        Meta(description="have Claude Code tell of each request as it is made, by OpenTelemetry"),
    ] = False


def find_ledger(settings: MachineSettings) -> Path:
    """Where the ledger is. It is one of the machine: an issue may have several configurations."""
    return read_section(settings, Cost).ledger or Path(DEFAULT).expanduser()
