"""Keeps the sessions of a node alive that others have placed there, as `dev-poll` does elsewhere.

No `dev-poll` runs there: whoever placed them calls often, and that is when it is done.
"""

from __future__ import annotations

import contextlib
import time

from sm.adapters.own_start import fork_aside
from sm.base.errors import SmError
from sm.issues.poll import tick
from sm.plugins.hosts.folder import PLUGIN
from sm.sessions.project import Project
from sm.store.files import ensure_private_dir, write_atomic

EVERY_S = 20.0


def keep_alive(project: Project) -> None:
    """Have what is due for the project done, aside, unless that was just now."""
    folder = project.root.plugins / PLUGIN
    for one in (project.root.private, project.root.plugins, folder):
        ensure_private_dir(one)
    last = folder / f"kept-{project.name}"
    with contextlib.suppress(OSError):
        if 0 <= time.time() - last.stat().st_mtime < EVERY_S:
            return
    write_atomic(last, "")
    fork_aside(lambda: _tend(project))


def _tend(project: Project) -> None:
    with contextlib.suppress(SmError):  # the next call does it again, and the sessions say why
        for _ in tick(project, takes_up=False):
            pass
