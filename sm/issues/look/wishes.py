"""Wishes of a node for a newer look at the forge: the installation that placed sessions takes it.

Each process that hears them has a FIFO in the folder `wishes`, and each wish is a line in it: the
name of a project. Without a FIFO nobody is asked, and the node looks by itself. The other
installation notes a wish as the time of a file, at which `dev-poll --loop` ticks; that has a FIFO
of its own, its bell, and a line in the bell makes it look at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from pathlib import Path

from sm.sessions.project import Project
from sm.store.fifo import WakeUp, ensure_fifo, listen_anew, open_fifo, wake_reader
from sm.store.files import discard, ensure_private_dir, list_names, write_atomic
from sm.store.paths import ProjectDir, Root, check_name

READ_LIMIT = 1 << 16

# The side that wishes


def wish(project: Project) -> bool:
    """Wish for a newer look; return whether anybody hears it."""
    return _write_to_all(project.root.wishes, f"{project.name}\n".encode())


def _write_to_all(folder: Path, line: bytes) -> bool:
    """Write a line to each FIFO in the folder; return whether anybody has one open."""
    heard = False
    for name in list_names(folder):
        answer = wake_reader(folder / name, line)
        if answer is WakeUp.UNHEARD:  # whoever made it has died
            discard(folder / name)
        heard |= answer is WakeUp.HEARD
    return heard


# The side that hears


class Ear:
    """FIFO that this process keeps open, so that a wish is heard whenever it comes."""

    def __init__(self, root: Root) -> None:
        """Make the FIFO, under our process's number."""
        ensure_private_dir(root.private)
        self.path = ensure_private_dir(root.wishes) / f"{os.getpid()}"
        self.fifo = listen_anew(self.path)

    def close(self) -> None:
        """Hear nothing more; a process that waits at the FIFO ends."""
        if self.fifo >= 0:
            with contextlib.suppress(OSError):
                self.path.unlink()
            os.close(self.fifo)
            self.fifo = -1


def hear(root: Root, owner: int, within_s: float) -> list[str]:
    """Wait for wishes in the FIFO of the process `owner`; return the projects, none if none came.

    Raises:
        OSError: there is no such FIFO.

    """
    fifo = open_fifo(root.wishes / f"{owner}", os.O_RDONLY)
    try:
        poll = select.poll()
        poll.register(fifo, select.POLLIN)
        poll.poll(within_s * 1000)
        with contextlib.suppress(BlockingIOError):
            said = os.read(fifo, READ_LIMIT).decode("ascii", "replace")
            return list(dict.fromkeys(said.split()))
        return []
    finally:
        os.close(fifo)


# The side that grants


def note(root: Root, name: str) -> None:
    """Make the next tick of the project look again, and come soon."""
    directory = root.project(check_name(name, "project"))
    if directory.path.is_dir():
        write_atomic(directory.look_wanted, "")
        _write_to_all(root.bells, b"\n")


def hang_bell(root: Root, owner: int) -> Path:
    """Return the FIFO that the process `owner`, a `dev-poll --loop`, opens to be woken by it."""
    ensure_private_dir(root.private)
    return ensure_fifo(ensure_private_dir(root.bells) / f"{owner}")


def read_wished_at(directory: ProjectDir) -> float:
    """Return when a newer look was wished for last (seconds since 1970), 0 for never."""
    try:
        return min(directory.look_wanted.stat().st_mtime, time.time())
    except FileNotFoundError:
        return 0.0
