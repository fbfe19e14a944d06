"""Waits for the commands of a person that the code under test has had started."""

from __future__ import annotations

from sm.adapters import process
from tests.helpers import HANG_S


def await_commands() -> None:
    """Wait until every command that this process has had started is over.

    Another test of this process may have left a monitor, which ends when it likes.
    """
    for started in process._spawned:
        if "monitor" not in str(started.args):
            started.wait(HANG_S)
