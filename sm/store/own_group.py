"""Decides whether only the owner of a file may do what its group may do.

On many systems each user has a group of its own and the umask 002 (Debian's and Ubuntu's
`USERGROUPS_ENAB` in login.defs(5)), so that all that a program creates is writable for that group.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

GROUPS_FILE = Path("/etc/group")


def may_others_write(found: os.stat_result) -> bool:
    """Say whether another user than its owner, who is us, may write to it; root always may."""
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
