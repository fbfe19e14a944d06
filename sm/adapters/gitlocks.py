"""Lock files that a killed git has left behind, found and removed.

Git's locks are files: they outlive a git that is killed, and every later one stops at them. A git
that holds one has the file open, or is at work in the repository and older than its lock.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sm.adapters import proc
from sm.adapters.proc import PROC
from sm.store.lock import try_hold_folder

OLD_S = 60.0
"""A lock this young may be held by a git that cannot be seen, as one in another container."""

SLACK_S = 2.0
"""The clocks of files and of processes differ by less."""

PLACES = (
    "",
    "info",
    "objects",
    "objects/info",
    "objects/info/commit-graphs",
    "objects/pack",
    "reftable",
)
"""Where in a repository git locks files, other than below `refs`."""


class Lock(NamedTuple):
    """A lock file as it was seen: device, inode, time of change (ns) tell it from a later one."""

    path: str
    device: int
    inode: int
    changed_ns: int

    @property
    def age_s(self) -> float:
        """Seconds since it was made; negative where the clock was set back."""
        return time.time() - self.changed_ns / 1e9


def clear(
    git_dir: Path, folders: Iterable[Path] = (), *, older_than_s: float = OLD_S
) -> Iterator[str]:
    """Remove the dead locks of a repository, its worktrees and submodules; yields their paths.

    `git_dir` is what all worktrees share, or a bare repository. `folders` are further places in
    which gits of the repository run.
    """
    old = [lock for lock in locks(git_dir) if lock.age_s >= older_than_s]
    if not old:
        return
    with try_hold_folder(git_dir) as ours:  # of two that clear, the later would hit new locks
        for lock in dead(old, [git_dir, *_worktrees(git_dir), *folders]) if ours else ():
            if remove(lock):
                yield lock.path


def locks(git_dir: Path) -> list[Lock]:
    """The locks there that this user has made; no git is started."""
    return [lock for path in _lock_files(str(git_dir)) if (lock := _seen(path))]


def dead(found: list[Lock], folders: Iterable[Path]) -> list[Lock]:
    """Those of `found` that no process can be holding; none where that cannot be known."""
    try:
        pids = proc.list_pids()
    except OSError:
        return []
    places = [os.fsencode(os.path.realpath(folder)) for folder in folders]
    left = _closed(found, pids)
    gits = [age for pid in pids if left and (age := _git_age(PROC / pid, places)) is not None]
    return [lock for lock in left if all(lock.age_s > age + SLACK_S for age in gits)]


def remove(lock: Lock) -> bool:
    """Remove the very lock that was seen; False where another git has made it anew, or it went."""
    if _seen(lock.path) != lock:
        return False
    try:
        os.unlink(lock.path)  # noqa: PTH108 - nothing may come in between
    except OSError:
        return False
    return True


def git_at_work(folder: Path) -> bool:
    """Whether a git of any user runs in `folder` or names it; True where that is not known."""
    place = [os.fsencode(os.path.realpath(folder))]
    try:
        return any(_works_in(PROC / pid, place, unknown=True) for pid in proc.list_pids())
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
    """Those of submodules: the name of one may have slashes."""
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


def _seen(path: str) -> Lock | None:
    """None for what is no plain file of this user: a link, another user's lock."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        return None
    return Lock(path, found.st_dev, found.st_ino, found.st_mtime_ns)


def _worktrees(git_dir: Path) -> Iterator[Path]:
    """The folders of the repository's working trees, as far as the repository knows them."""
    if git_dir.name == ".git":
        yield git_dir.parent
    for record in _entries(f"{git_dir}/worktrees"):
        with contextlib.suppress(OSError):
            yield Path(os.fsdecode(Path(record.path, "gitdir").read_bytes().strip())).parent


def _closed(found: list[Lock], pids: list[str]) -> list[Lock]:
    """Those that no process has open. A process that may not be looked at is another user's."""
    names = {os.path.basename(lock.path): lock for lock in found}  # noqa: PTH119 - plain strings
    held = {
        (status.st_dev, status.st_ino)
        for pid in pids
        for entry in _entries(f"{PROC}/{pid}/fd")
        if (status := _opened(entry.path, names.keys()))
    }
    return [lock for lock in found if (lock.device, lock.inode) not in held]


def _opened(descriptor: str, names: Iterable[str]) -> os.stat_result | None:
    """What an open file is, if its name is one of `names`; in a container its path is another."""
    try:
        name = os.readlink(descriptor).rpartition("/")[2]  # noqa: PTH115 - there are thousands
        return Path(descriptor).stat() if name in names else None
    except OSError:
        return None


def _git_age(process: Path, places: list[bytes]) -> float | None:
    """For how many seconds a git has been at work in one of `places`; None where it is not.

    Another user's cannot hold a lock that is ours.
    """
    if not _works_in(process, places, unknown=False):
        return None
    found = proc.find(int(process.name))
    return proc.age_s(found) if found else None


def _works_in(process: Path, places: list[bytes], *, unknown: bool) -> bool:
    """Whether a process is a git that runs in, or names, one of `places`; else `unknown`."""
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
