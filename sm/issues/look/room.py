"""Room of the machine: below a limit nothing new begins, and the rest is for those at work.

Measuring takes no process and no look at any file: statvfs(3), and one file of proc_meminfo(5).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct, structs

from sm.base.errors import SmError
from sm.base.issue_id import read_part
from sm.base.text import format_count
from sm.config.schema import KeepFree
from sm.sessions.false_starts import list_faults
from sm.sessions.project import Project
from sm.store.damage import read_rebuildable
from sm.store.files import discard, write_json
from sm.store.paths import prefix_sessions

SHARE = 0.05
"""Share of a small disk or memory that has to be free, instead of the usual amount."""

FILES = 10_000
"""Files that a disk must still have room for, or that share of them."""

MEGABYTE = 1 << 20


class FreeRoom(Struct, frozen=True):
    """Free amount of something: bytes, or files. `total` is 0 if that has no limit."""

    free: int
    total: int

    def lacks(self, least: int) -> bool:
        """Say whether less is free than has to be; 0 for `least`: never."""
        return self.total > 0 and self.free < find_least(self.total, least)


def find_least(total: int, least: int) -> int:
    """Return how much has to be free of `total`."""
    return min(least, int(total * SHARE))


def show_bytes(count: int) -> str:
    """Return a number of bytes for people."""
    if count < 1000 * MEGABYTE:
        return f"{count // MEGABYTE} MB"
    return f"{count / (1024 * MEGABYTE):.1f} GB"


def explain_bytes(what: str, room: FreeRoom, least: int) -> str:
    """Return why nothing new is taken up; '' if there is room enough."""
    if not room.lacks(least):
        return ""
    needed = show_bytes(find_least(room.total, least))
    return f"{show_bytes(room.free)} of {what} are free, and {needed} have to be"


def explain_disk(
    where: str, room: FreeRoom, files: FreeRoom, least: int, *, read_only: bool
) -> str:
    """Return why nothing new is taken up; '' if the disk has room enough."""
    if not least:
        return ""
    if read_only:
        return f"the disk of '{where}' takes no writes"
    if said := explain_bytes(f"the disk of '{where}'", room, least):
        return said
    return f"the disk of '{where}' takes hardly any more files" if files.lacks(FILES) else ""


MEMORY = Path("/proc/meminfo")


class Shortage(Struct, frozen=True):
    """Shortage of the machine: a short name, a sentence, a command that shows what takes the room.

    `since` is in seconds since 1970, 0 if no tick has seen it yet.
    """

    key: str
    shortly: str
    text: str
    command: str
    since: float = 0.0


def find_shortages(limits: KeepFree, folders: Iterable[Path]) -> Iterator[Shortage]:
    """Yield what is short now: memory, and the disks of these folders, each once."""
    disks: dict[int, Path] = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            there = next(one for one in (folder, *folder.parents) if one.exists())
            disks.setdefault(there.stat().st_dev, there)
    for folder in disks.values():
        with contextlib.suppress(OSError):
            yield from _measure_disk(folder, limits.disk * MEGABYTE)
    if text := explain_bytes("memory", measure_memory(), limits.memory * MEGABYTE):
        command = "ps -eo rss,pid,args --sort=-rss | head"
        yield Shortage("memory", "memory is nearly used up", text, command)


def _measure_disk(folder: Path, least: int) -> Iterator[Shortage]:
    found = os.statvfs(folder)
    text = explain_disk(
        str(folder),
        FreeRoom(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize),
        FreeRoom(found.f_favail, found.f_files),
        least,
        read_only=bool(found.f_flag & os.ST_RDONLY),
    )
    if text:
        command = f"du -xh --max-depth=2 {shlex.quote(str(folder))} | sort -h | tail"
        yield Shortage(f"disk:{folder}", f"the disk of '{folder}' is nearly full", text, command)


def measure_memory() -> FreeRoom:
    """Return how much memory programs can still get, by the kernel's own estimate."""
    try:
        lines = MEMORY.read_text("ascii").splitlines()
        found = {name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines)}
        return FreeRoom(found["MemAvailable"] << 10, found["MemTotal"] << 10)
    except (OSError, KeyError, ValueError, IndexError):
        return FreeRoom(0, 0)  # a kernel that does not say it


def list_folders(project: Project) -> tuple[Path, ...]:
    """Return the folders in which a new session needs some room."""
    settings = project.settings
    return (project.root.path, settings.worktrees, settings.repo)


def list_shortages(project: Project) -> list[Shortage]:
    """Return what the project's machine lacks now, and since when a tick has seen that."""
    found = [*find_shortages(project.config.keep_free, list_folders(project))]
    found += _find_false_starts(project)
    since = _read(project)
    return [structs.replace(one, since=since.get(one.key, 0.0)) for one in found]


def _find_false_starts(project: Project) -> Iterator[Shortage]:
    """Yield a shortage if agents end as they start, whatever they are to work on.

    A single session tells it only of its own project: another's program may work.
    """
    head = prefix_sessions(project.name)
    found = [
        one
        for one in list_faults(project.root, time.time())
        if len(one.sessions) > 1 or read_part(one.sessions[0].removeprefix(head))
    ]
    for fault in found[:1]:
        said = f" (“{fault.reason}”)" if fault.reason else ""
        where = format_count(len(fault.sessions), "session")
        text = f"agents end as they start, in {where}{said}"
        yield Shortage("starts", "agents end as they start", text, "sm doctor")


def note_shortages(project: Project) -> list[Shortage]:
    """List the shortages; record since when each lasts, as far as there is room for that."""
    found = list_shortages(project)
    now = time.time()
    known = [structs.replace(one, since=one.since or now) for one in found]
    since = {one.key: one.since for one in known}
    if since != _read(project):
        with contextlib.suppress(SmError):
            if since:
                write_json(project.directory.shortage, since)
            else:
                discard(project.directory.shortage)
                discard(project.directory.shortage_told)
    return known


def _read(project: Project) -> dict[str, float]:
    path = project.root.project(project.name).shortage
    return read_rebuildable(path, dict[str, float]) or {}
