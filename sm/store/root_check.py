"""Checks whether the state root and its private directory are safe, and who may write to a file."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path
from typing import NamedTuple

from sm.base.errors import StateError
from sm.store.paths import Root

ELSEWHERE = "set 'state_root' to a folder of your own"
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
USER_MAP = Path("/proc/self/uid_map")
GROUPS_FILE = Path("/etc/group")


class DirectoryFault(NamedTuple):
    """A fault of a directory, and what a person should do about it."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}"


def check_root(root: Root) -> Root:
    """Return `root` if no other user can replace our files; it need not exist yet.

    Raises:
        StateError: another user could, or owns what is in the private directory's place.

    """
    if fault := find_root_fault(root.path) or find_private_fault(root.private):
        raise StateError(str(fault))
    return root


def find_root_fault(path: Path) -> DirectoryFault | None:
    """Say what is wrong with the state root. It must be our own, or sticky like /tmp.

    No other user may be able to rename it, or a folder above it.
    """
    return _find_fault_within(path) or _find_fault_above(path)


def _find_fault_above(path: Path) -> DirectoryFault | None:
    above = dict.fromkeys((*path.parents, *path.resolve().parents))
    for folder in above:
        try:
            found = folder.stat()
        except OSError:
            continue  # it is not there yet, or out of reach, as the state root is then
        is_foreign = found.st_uid != os.geteuid() and not _is_the_systems(found.st_uid)
        if is_foreign or (not found.st_mode & stat.S_ISVTX and may_others_write(found)):
            what = f"others may replace the state root '{path}', as '{folder}' is open to them"
            return DirectoryFault(what, ELSEWHERE)
    return None


def _find_fault_within(path: Path) -> DirectoryFault | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return _out_of_reach(path, error)
    if not stat.S_ISDIR(found.st_mode):
        return DirectoryFault(
            f"the state root '{path}' is no directory", "remove it, or set 'state_root'"
        )
    if found.st_uid != os.geteuid() and not _is_the_systems(found.st_uid):
        return DirectoryFault(
            f"the state root '{path}' is another user's, who may replace files", ELSEWHERE
        )
    if found.st_mode & OTHERS_MAY_WRITE and not found.st_mode & stat.S_ISVTX:
        remedy = f"run chmod go-w '{path}'" if found.st_uid == os.geteuid() else ELSEWHERE
        return DirectoryFault(f"others may replace files in the state root '{path}'", remedy)
    return None


def find_private_fault(path: Path) -> DirectoryFault | None:
    """Say what is wrong with a directory that only this user may enter; None if nothing."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return _out_of_reach(path, error)
    if not stat.S_ISDIR(found.st_mode):
        return DirectoryFault(f"'{path}' is not a directory", "remove it, or move the state root")
    if found.st_uid != os.geteuid():
        return DirectoryFault(f"'{path}' is not owned by you", "remove it, or move the state root")
    if found.st_mode & 0o077:
        return DirectoryFault(f"'{path}' is open to other users", f"run chmod 700 '{path}'")
    if found.st_mode & 0o700 != 0o700:
        mode = stat.S_IMODE(found.st_mode)
        return DirectoryFault(f"'{path}' has mode {mode:03o}", f"run chmod 700 '{path}'")
    return None


def is_noexec(path: Path) -> bool:
    """Say whether the file system of `path`, or of the folder above it, runs no programs."""
    for place in (path, *path.parents):
        try:
            return bool(os.statvfs(place).f_flag & os.ST_NOEXEC)
        except OSError:
            continue
    return False


def _out_of_reach(path: Path, error: OSError) -> DirectoryFault:
    return DirectoryFault(
        f"cannot look at '{path}': {os.strerror(error.errno or 0).lower()}", ELSEWHERE
    )


def _is_the_systems(uid: int) -> bool:
    """Say whether a user is root, who may do anything anyway.

    Within a user namespace that does not have root, as sandboxes make them, root's files belong to
    the overflow uid (user_namespaces(7)).
    """
    return uid == 0 or (not _has_root() and uid == _overflow_uid())


def _has_root() -> bool:
    try:
        return any(line.split()[0] == "0" for line in USER_MAP.read_text().splitlines())
    except OSError:
        return True


def _overflow_uid() -> int:
    try:
        return int(Path("/proc/sys/kernel/overflowuid").read_text())
    except (OSError, ValueError):
        return -1


def may_others_write(found: os.stat_result) -> bool:
    """Say whether another user than its owner, who is us, may write to it; root always may."""
    # On many systems each user has a group of its own and the umask 002, so that all that a program
    # creates is writable for that group: Debian's and Ubuntu's USERGROUPS_ENAB in login.defs(5).
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not is_own_group(found.st_gid)


def is_own_group(gid: int) -> bool:
    """Say whether nobody but this user is in the group, as far as that can be known.

    A directory service need not list its accounts, so of its groups only one with the user's own
    name counts, which is how private groups are called.
    """
    try:
        group, user = grp.getgrgid(gid), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    if {*group.gr_mem} - {user.pw_name}:
        return False
    if any(one.pw_gid == gid and one.pw_uid != user.pw_uid for one in pwd.getpwall()):
        return False
    return group.gr_name == user.pw_name or _is_local(gid)


def _is_local(gid: int) -> bool:
    try:
        lines = GROUPS_FILE.read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    return any(line.split(":")[2:3] == [str(gid)] for line in lines)
