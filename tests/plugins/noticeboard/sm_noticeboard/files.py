"""What `sm uninstall` says of the board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sm_noticeboard.settings import Noticeboard

from sm.config.shapes import read_section
from sm.sessions.machine import Machine
from sm.setup.uninstall import Remainder


def list_files(machine: Machine, _env: Mapping[str, str]) -> Iterator[Remainder]:
    """Yield the board of the machine, which stays."""
    board = read_section(machine.settings, Noticeboard).board
    if board and board.is_dir():
        yield Remainder(f"notices: {board}", kept="people may not have read them")
