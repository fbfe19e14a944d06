"""Finds processes that an agent has started and left running, even after their parents ended.

Every process that an agent starts has the session in its initial environment, even if it is in its
own process session and has no parent. A working directory proves nothing, because a person's shell
may be there, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sm.adapters import procfs
from sm.adapters.procfs import Process
from sm.store.paths import Root, SessionDir

VARIABLE = "SM_SESSION_DIR"


def find_strays(directory: SessionDir) -> set[Process]:
    """Return all processes of the session's agents, the current agent included."""
    return {one for one, place in procfs.find_by_variable(VARIABLE) if place == str(directory.path)}


def find_all_strays(root: Root) -> Iterator[tuple[SessionDir, Process]]:
    """Yield all processes of any session's agents, with the session, which may be gone."""
    for process, place in procfs.find_by_variable(VARIABLE):
        if Path(place).parent == root.sessions:
            yield root.session(Path(place).name), process
