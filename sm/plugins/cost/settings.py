"""Settings of costs, and where the plugin keeps its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from sm.config.schema import MachineSettings
from sm.config.section import Section
from sm.config.shapes import read_section

if TYPE_CHECKING:
    from sm.sessions.machine import Machine
    from sm.setup.uninstall import Remainder
    from sm.store.paths import Root

SESSION = "sm.session"
"""Name under which an agent tells its session with its requests."""
DEFAULT = "~/.local/share/sm/ledger.db"


class CostSection(Section, frozen=True):
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
    """Find the ledger. It is one of the machine: an issue may have several configurations."""
    return read_section(settings, CostSection).ledger or Path(DEFAULT).expanduser()


def find_folder(root: Root) -> Path:
    """The folder of this plugin."""
    return root.plugins / "cost"


def list_ledger(machine: Machine, _env: Mapping[str, str]) -> Iterator[Remainder]:
    """List what `sm uninstall` says of the ledger, which stays."""
    from sm.setup.uninstall import Remainder

    path = find_ledger(machine.settings)
    if path.is_file():
        yield Remainder(f"what agents have used: {path}", kept="nothing else knows it")
