"""Finds out whether a CI command was killed from outside, which says nothing of its commit.

A command that ends itself, as by a segmentation fault or a failed assertion, has failed: that is
the code's doing. Nothing is known after one that took longer than the project's `ci.timeout`.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path

OUTSIDE = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL})
"""Signals that others send to end a process: a kernel without memory, a person, a shutdown."""

THROUGH_A_SHELL = frozenset({signal.SIGTERM, signal.SIGKILL})
"""Signals that count in a shell's exit code as well. Its codes for the others, 129 and 130, are
also used by programs in a meaning of their own."""

SHELL_ADDS = 128
OWN_GROUP = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
OOM_KILLS = re.compile(r"^oom_kill (\d{1,18})$", re.MULTILINE)


def killer(code: int, oom_kills: int = 0) -> str:
    """Name the killer of a command, by its exit code as `subprocess` has it; '' for none.

    `oom_kills` is how many processes around it the kernel has killed meanwhile.
    """
    for number in OUTSIDE:
        if code == -number or (number in THROUGH_A_SHELL and code == SHELL_ADDS + number):
            return number.name
    return "the kernel, as memory ran out" if code and oom_kills > 0 else ""


def count_oom_kills(own_group: Path = OWN_GROUP, groups: Path = GROUPS) -> int:
    """Count the processes of our control group that the kernel has killed for want of memory.

    0 where that is not told: without control groups of version 2, or in the topmost one.
    """
    try:
        name = re.search(r"^0::/(.*)$", own_group.read_text(), re.MULTILINE)
        said = (groups / (name[1] if name else "") / "memory.events").read_text()
    except (OSError, ValueError):
        return 0
    found = OOM_KILLS.search(said)
    return int(found[1]) if found else 0
