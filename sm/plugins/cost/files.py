"""What the ledger leaves on a machine, for `sm uninstall`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sm.plugins.cost.settings import find_ledger
from sm.sessions.machine import Machine
from sm.setup.uninstall import Part


def list_ledger(machine: Machine, _env: Mapping[str, str]) -> Iterator[Part]:
    """The ledger stays: nothing else knows what was spent."""
    path = find_ledger(machine.settings)
    if path.is_file():
        yield Part(f"what agents have used: {path}", kept="nothing else knows it")
