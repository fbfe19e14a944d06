"""The receivers of the tests: found by their command line, and ended by their pid."""

from __future__ import annotations

import os
import signal

from sm.adapters import procfs
from sm.adapters.procfs import Process
from sm.store.paths import Root
from tests.helpers import wait_for

MODULE = "sm.plugins.cost.ledger.receiver"


def list_receivers(root: Root) -> list[Process]:
    """Those of a state root."""
    found = (procfs.find(int(entry.name)) for entry in procfs.PROC.glob("[1-9]*"))
    return [
        one for one in found if one and {MODULE, str(root.path)} <= set(procfs.read_command(one))
    ]


def end_receivers(root: Root) -> None:
    """End them, and wait for their end."""
    for one in list_receivers(root):
        os.kill(one.pid, signal.SIGKILL)
    wait_for(lambda: not list_receivers(root), "the receivers' end")
