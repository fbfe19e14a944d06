"""Turns a fork of the server of passes into the child that the monitor would have had."""

from __future__ import annotations

import contextlib
import locale
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from sm.base import at_hand
from sm.base.clock import Deadline
from sm.base.decoder import decode
from sm.base.errors import SmError
from sm.store.files import open_guarded
from sm.store.paths import SessionDir

STDIN, STDOUT, STDERR = range(3)
CALLER_S = 30.0
"""Time that a fork waits for what its monitor writes at once, in seconds."""
ELSEWHERE = 199
"""Exit code of a fork that leaves the pass to the monitor."""
FAILED = 1


class Learned(msgspec.Struct):
    """Modules and notes that a pass has loaded and its server had not."""

    modules: list[str]
    noted: list[at_hand.Noted]


class MonitorEnvironment(NamedTuple):
    """Environment of a pass's monitor: what a child of the monitor would have inherited."""

    umask: int
    folder: str
    python: str
    limits: str
    environment: dict[str, str]


class Fork:
    """Fork of the server, for the pass that it is to make."""

    def __init__(self, session: str, tell: int) -> None:
        """Keep in mind what is loaded now; `tell` is where the server listens."""
        self.session, self._tell = session, tell
        self._modules, self._noted = set(sys.modules), set(at_hand.list_noted())

    def tell_learned(self) -> None:
        """Tell the server what the pass had to load."""
        modules = [name for name in sys.modules if name not in self._modules]
        noted = [one for one in at_hand.list_noted() if one not in self._noted]
        if modules or noted:
            with contextlib.suppress(OSError):
                os.set_blocking(self._tell, False)
                os.write(self._tell, msgspec.json.encode(Learned(modules, noted)))


def become_child(folder: SessionDir, caller: int, ident: str, *, python: str, limits: str) -> None:
    """Become what the monitor's own child would be; end the fork if that fails.

    `caller` is the FIFO into which the monitor of the session in `folder` writes what it is.
    `python` and `limits` are the server's own: a monitor with others makes its pass itself.
    """
    _take_streams(folder.monitor_log)
    found = _read_caller(caller, ident)
    close(caller)
    if found is None:  # the monitor was killed meanwhile
        os._exit(FAILED)
    if not (found.python == python and found.limits == limits):
        os._exit(ELSEWHERE)
    os.environ.clear()
    os.environ.update(found.environment)
    os.umask(found.umask)
    with contextlib.suppress(OSError):  # it was removed: '/' is as good
        os.chdir(found.folder)
    time.tzset()
    if not _has_our_encoding():
        os._exit(ELSEWHERE)


def _take_streams(log: Path) -> None:
    """Give the pass no input, and let all that it says go to the session's log."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), STDIN)
    try:
        with open_guarded(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as fd:
            os.set_blocking(fd, True)
            os.dup2(fd, STDOUT)
    except SmError:  # the session has gone, and there is nobody to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
    os.dup2(STDOUT, STDERR)


def _read_caller(fd: int, ident: str) -> MonitorEnvironment | None:
    """Read what the monitor tells of itself; None if it does not come to the end of it."""
    deadline, told = Deadline(CALLER_S), b""
    first, last = f"{ident}\0".encode(), f"\0{ident}\0".encode()
    while not (told.startswith(first) and told.endswith(last)):
        if deadline.is_over or not select.select([fd], [], [], deadline.left_s)[0]:
            return None
        if not (part := os.read(fd, 1 << 16)):
            return None
        told += part
    _, umask, folder, python, limits, *environment, _, _ = os.fsdecode(told).split("\0")
    pairs = (entry.partition("=") for entry in environment)
    return MonitorEnvironment(
        int(umask, 8), folder, python, limits, {name: value for name, _, value in pairs}
    )


def describe_limits() -> str:
    """Describe the kernel's limits on this process; an agent's sandbox leaves it less.

    As `_describe_limits` in lib/passes.sh has it.
    """
    kept = ("Groups:", "CapEff:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:")
    found = []
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text("utf-8", "replace").splitlines()
        found += [line.strip() for line in lines if line.startswith(kept)]
        spaces = Path("/proc/self/ns")
        found += [str((spaces / name).readlink()) for name in ("mnt", "net", "pid", "user")]
    return "\n".join(found)


def _has_our_encoding() -> bool:
    """Whether Python would have begun with our encoding in the environment that we have now.

    In the C locale it takes UTF-8, and says so in the environment (PEP 538, PEP 540).
    """
    if _set_locale("") in ("C", "POSIX", None):
        if _set_locale("C.UTF-8") and not os.environ.get("LC_ALL"):
            os.environ["LC_CTYPE"] = "C.UTF-8"
        return sys.getfilesystemencoding() == "utf-8"
    return locale.getencoding().lower() == sys.getfilesystemencoding()


def _set_locale(name: str) -> str | None:
    """Set the locale of characters; None if there is none of that name."""
    try:
        return locale.setlocale(locale.LC_CTYPE, name)
    except locale.Error:
        return None


def read_learned(fd: int) -> Learned | None:
    """Return what a pass that has ended told; None for nothing, or only half of it."""
    os.set_blocking(fd, False)
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return decode(os.read(fd, 1 << 16), Learned)
    return None


def hear_of_children() -> int:
    """Return a pipe that has something to read when a child has ended."""
    hear, tell = os.pipe()
    for end in (hear, tell):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    return hear


def close(*ends: int | None) -> None:
    """Close what is open of them."""
    for end in ends:
        if end is not None:
            with contextlib.suppress(OSError):
                os.close(end)
