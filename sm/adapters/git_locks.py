"""Finds and removes the lock files that a killed git has left behind.

Git's locks are files. They outlive a killed git, and stop every later one. A git that holds a lock
has the file open, or works in the repository and is older than the lock.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sm.adapters import procfs
from sm.adapters.procfs import PROC
from sm.store.lock import try_hold_folder

OLD_S = 60.0
"""Seconds; a younger lock may belong to a git that we cannot see, such as in another container."""

SLACK_S = 2.0
"""Seconds; the clocks of files and of processes differ by less than this."""

PLACES = (
    "",
    "info",
    "objects",
    "objects/info",
    "objects/info/commit-graphs",
    "objects/pack",
    "reftable",
)
"""Folders of a repository in which git locks files, besides `refs`."""


class Lock(NamedTuple):
    """A lock file; device, inode and time of change (ns) tell it from a later one."""

    path: str
    device: int
    inode: int
    changed_ns: int

    @property
    def age_s(self) -> float:
        """The age of the lock in seconds; negative if the clock was set back."""
        return time.time() - self.changed_ns / 1e9


def clear(
    git_dir: Path, folders: Iterable[Path] = (), *, older_than_s: float = OLD_S, only: str = ""
) -> list[str]:
    """Remove the dead locks of a repository, its worktrees and submodules; return their paths.

    `only` is the path of the one that is meant; '' for all of them. `git_dir` is the folder that
    all worktrees share, or a bare repository. `folders` are further places in which gits of the
    repository run.
    """
    found = (lock for lock in find_locks(git_dir) if only in ("", lock.path))
    old = [lock for lock in found if lock.age_s >= older_than_s]
    if not old:
        return []
    # If two processes clear, the later one would hit new locks.
    with try_hold_folder(git_dir) as ours:
        dead = select_dead(old, [git_dir, *_worktrees(git_dir), *folders]) if ours else []
        return [lock.path for lock in dead if remove(lock)]


def find_locks(git_dir: Path) -> list[Lock]:
    """Return this user's lock files there; starts no git."""
    return [lock for path in _lock_files(str(git_dir)) if (lock := _read_lock(path))]


def select_dead(found: list[Lock], folders: Iterable[Path]) -> list[Lock]:
    """Return the locks that no process can be holding; none if that cannot be known."""
    try:
        pids = procfs.list_pids()
    except OSError:
        return []
    places = [os.fsencode(os.path.realpath(folder)) for folder in folders]
    left = _list_closed(found, pids)
    gits = [age for pid in pids if left and (age := _git_age(PROC / pid, places)) is not None]
    return [lock for lock in left if all(lock.age_s > age + SLACK_S for age in gits)]


def remove(lock: Lock) -> bool:
    """Remove exactly this lock; False if it is gone, or another git has made it again."""
    if _read_lock(lock.path) != lock:
        return False
    try:
        os.unlink(lock.path)  # noqa: PTH108 - nothing may come in between
    except OSError:
        return False
    return True


def is_git_at_work(folder: Path) -> bool:
    """Say whether a git of any user runs in `folder` or names it; True if unknown."""
    place = [os.fsencode(os.path.realpath(folder))]
    try:
        return any(_works_in(PROC / pid, place, unknown=True) for pid in procfs.list_pids())
    except OSError:
        return True


def _lock_files(git_dir: str) -> Iterator[str]:
    for place in PLACES:
        yield from (e.path for e in _entries(f"{git_dir}/{place}") if e.name.endswith(".lock"))
    for folder, _, names in os.walk(f"{git_dir}/refs"):
        yield from (f"{folder}/{name}" for name in names if name.endswith(".lock"))
    for worktree in _entries(f"{git_dir}/worktrees"):
        yield from _lock_files(worktree.path)
    yield from _lock_files_of_modules(f"{git_dir}/modules")


def _lock_files_of_modules(folder: str) -> Iterator[str]:
    """Yield those of submodules, whose names may have slashes."""
    for entry in _entries(folder):
        if os.path.lexists(f"{entry.path}/HEAD"):
            yield from _lock_files(entry.path)
        elif entry.is_dir(follow_symlinks=False):
            yield from _lock_files_of_modules(entry.path)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _read_lock(path: str) -> Lock | None:
    """Return a plain file of this user as a lock; None for a link or another user's file."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        return None
    return Lock(path, found.st_dev, found.st_ino, found.st_mtime_ns)


def _worktrees(git_dir: Path) -> Iterator[Path]:
    """Yield the folders of the repository's working trees, as far as it knows them."""
    if git_dir.name == ".git":
        yield git_dir.parent
    for record in _entries(f"{git_dir}/worktrees"):
        with contextlib.suppress(OSError):
            yield Path(os.fsdecode(Path(record.path, "gitdir").read_bytes().strip())).parent


def _list_closed(found: list[Lock], pids: list[str]) -> list[Lock]:
    """Return the locks that no process has open. A hidden process belongs to another user."""
    names = {os.path.basename(lock.path): lock for lock in found}  # noqa: PTH119 - plain strings
    held = {
        (status.st_dev, status.st_ino)
        for pid in pids
        for entry in _entries(f"{PROC}/{pid}/fd")
        if (status := _opened(entry.path, names.keys()))
    }
    return [lock for lock in found if (lock.device, lock.inode) not in held]


def _opened(descriptor: str, names: Iterable[str]) -> os.stat_result | None:
    """Return an open file if its name is one of `names`; in a container its path differs."""
    try:
        name = os.readlink(descriptor).rpartition("/")[2]  # noqa: PTH115 - there are thousands
        return Path(descriptor).stat() if name in names else None
    except OSError:
        return None


def _git_age(process: Path, places: list[bytes]) -> float | None:
    """Return for how many seconds a git has worked in one of `places`; None if it does not.

    Another user's git cannot hold our lock.
    """
    if not _works_in(process, places, unknown=False):
        return None
    found = procfs.find(int(process.name))
    return procfs.measure_age(found) if found else None


def _works_in(process: Path, places: list[bytes], *, unknown: bool) -> bool:
    """Say whether a process is a git that runs in `places` or names one; else `unknown`."""
    try:
        if not (process / "comm").read_text().startswith("git"):
            return False
        cwd = os.fsencode(os.path.realpath(process / "cwd"))
        argv = (process / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError:
        return unknown
    return any(cwd == place or cwd.startswith(place + b"/") or place in argv for place in places)
