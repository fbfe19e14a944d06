"""The cluster of the demo, with what tests do to a node of it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.helpers import REPOSITORY

sys.path.append(str(REPOSITORY / "demo"))
import cluster

NODES = cluster.NODES
ClusterError = cluster.ClusterError
MISSING = cluster.find_missing()


class Cluster(cluster.Cluster):
    """It runs while it is entered; each daemon is a child of the test."""

    def find_processes(self, name: str, place: Path) -> set[int]:
        """Return the daemon of a node, and all that runs there; `place` is a folder of its own."""
        daemon = self.running[name].pid
        return {daemon, *list_children(daemon), *find_within(place)}

    def signal(self, name: str, place: Path, number: signal.Signals) -> None:
        """Send a signal to all of a node."""
        send(self.find_processes(name, place), number)


def signal_within(place: Path, number: signal.Signals) -> None:
    """Send a signal to all that has a folder in its environment."""
    send(find_within(place), number)


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to those that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def find_within(place: Path) -> set[int]:
    """Return the processes that have a folder in their environment."""
    found, wanted = set(), os.fsencode(place)
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes():
                found.add(int(entry.name))
    return found


def list_children(pid: int) -> Iterator[int]:
    """Yield the processes below one, as long as they have not left it."""
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from list_children(child)
