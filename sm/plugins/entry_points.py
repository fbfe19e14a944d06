"""Plugins that other distributions bring, by their entry points in the group `sm.plugins`.

To ask each installed distribution takes longer than `sm --help` may. So the result is kept beside
the cache of the configuration, and believed while no folder of Python's path has changed: an
installer adds, replaces or removes a folder there. If a folder changed a moment ago, nothing is
kept, as a second change could bear the same time.
"""

from __future__ import annotations

import binascii
import os
import sys
import time
from pathlib import Path

GROUP = "sm.plugins"
SETTLED_S = 2.0
"""Seconds after which a second change has another time on any file system."""

Found = list[tuple[str, str]]
"""Name of each plugin, and where it stands."""


def find_installed() -> Found:
    """Find the plugins that are installed beside `sm`, each with its name."""
    stamp = _stamp(sys.path)
    known = _recall(stamp)
    if known is not None:
        return known
    found = _ask()
    _keep(stamp, found)
    return found


def _ask() -> Found:
    """Ask the distributions; the order is the same each time."""
    from importlib.metadata import entry_points

    return sorted({(one.name, one.value) for one in entry_points(group=GROUP)})


def _stamp(folders: list[str]) -> str:
    """Return each folder of Python's path with the time of its last change."""
    return "\t".join(f"{folder}\t{_read_time(folder)}" for folder in folders)


def _read_time(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 (a Path for each takes longer)
    except OSError:
        return 0


def _recall(stamp: str) -> Found | None:
    """Return what was found when Python's path was like that; None if it is not known."""
    try:
        with open(_place(), encoding="utf-8", opener=_open_ours) as file:
            lines = file.read().split("\n")
    except (OSError, ValueError, RuntimeError):
        return None
    if lines[0] != stamp or lines[-1]:
        return None
    return [(name, place) for line in lines[1:-1] for name, _, place in [line.partition("\t")]]


def _open_ours(path: str, flags: int) -> int:
    """Open a file of this user's; it names code that will run."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if os.fstat(descriptor).st_uid != os.geteuid():
        os.close(descriptor)
        raise PermissionError(path)
    return descriptor


def _keep(stamp: str, found: Found) -> None:
    """Keep what was found. A failure has no effect."""
    from sm.base.errors import StateError
    from sm.store.files import ensure_private_dir, write_atomic

    times = [int(field) for field in stamp.split("\t")[1::2]]
    if time.time() - max(times, default=0) / 1e9 < SETTLED_S:
        return
    lines = [stamp, *(f"{name}\t{place}" for name, place in found), ""]
    try:
        place = _place()
        ensure_private_dir(place.parent, parents=True)
        write_atomic(place, "\n".join(lines).encode())
    except (StateError, OSError, ValueError, RuntimeError):
        return


def _place() -> Path:
    """Return the file of this Python with its path; another installation has another one.

    Raises:
        RuntimeError: the user has no home.

    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return cache / "sm" / f"plugins-{binascii.crc32(os.fsencode(os.pathsep.join(sys.path))):08x}"
