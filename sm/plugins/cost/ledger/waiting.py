"""When prices are looked up that only `sm status` waits for: the library takes 0.2 s to load."""

from __future__ import annotations

import os
import time

from sm.plugins.cost.folder import find_folder
from sm.store.files import discard, write_atomic
from sm.store.paths import Root

SHOWN_S = 60.0
"""So often at most."""
STAMP = "priced"
"""The file whose time says when prices were looked up last."""
WAITING = "unpriced"
"""There since requests were entered whose price was not looked up."""


def note_looked_up(root: Root) -> None:
    """Note that it is done now."""
    folder = find_folder(root)
    discard(folder / WAITING)
    write_atomic(folder / STAMP, "")


def note_waiting(root: Root) -> None:
    """Note that requests wait for it."""
    write_atomic(find_folder(root) / WAITING, "")


def find_looked_up(root: Root) -> float:
    """When it was done last, in seconds since 1970; 0 if never."""
    try:
        return os.stat(find_folder(root) / STAMP).st_mtime  # noqa: PTH116 - as elsewhere
    except OSError:
        return 0.0


def is_time(root: Root) -> bool:
    """Whether that was so long ago that nobody should wait any longer."""
    return not 0 <= time.time() - find_looked_up(root) < SHOWN_S


def have_waited(root: Root) -> bool:
    """Whether requests wait, and have waited for long."""
    return (find_folder(root) / WAITING).exists() and is_time(root)
