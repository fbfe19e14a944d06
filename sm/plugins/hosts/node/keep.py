"""Keeps the sessions of a node alive that others have placed there, as `dev-poll` does elsewhere.

No `dev-poll` runs there: whoever placed them calls often, and that is when it is done. In a job of
a cluster the job itself does it: what a step of it has begun may end with that step.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sm.adapters.own_start import fork_aside
from sm.base.errors import SmError
from sm.issues.poll import tick
from sm.plugins.hosts.folder import open_plugin_folder
from sm.sessions.project import Project
from sm.store import lock
from sm.store.files import write_atomic

EVERY_S = 20.0


def keep_alive(project: Project) -> None:
    """Have what is due for the project done, aside, unless that was just now, or a job does it."""
    if not lock.is_held(_locate(project, "keeper")):
        _keep_alive(project)


@contextlib.contextmanager
def keeping_alive(project: Project) -> Iterator[Callable[[], None]]:
    """Be the one who does it; yields what is to be called often. Nobody else does it meanwhile."""
    with lock.try_hold(_locate(project, "keeper")):
        yield lambda: _keep_alive(project)


def _keep_alive(project: Project) -> None:
    last = _locate(project, "kept")
    with contextlib.suppress(OSError):
        if 0 <= time.time() - last.stat().st_mtime < EVERY_S:
            return
    write_atomic(last, "")
    fork_aside(lambda: _tend(project))


def _locate(project: Project, what: str) -> Path:
    return open_plugin_folder(project.root) / f"{what}-{project.name}"


def _tend(project: Project) -> None:
    with contextlib.suppress(SmError):  # the next call does it again, and the sessions say why
        for _ in tick(project, takes_up=False):
            pass
