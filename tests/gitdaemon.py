"""A git remote that is reached over TCP, served by a process that belongs to no host."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from pathlib import Path

from tests.helpers import wait_for
from tests.ports import find_free_port

OPTIONS = ("--enable=receive-pack", "--max-connections=0")
"""git-daemon(1): it takes pushes, from as many at once as come."""


class GitDaemon:
    """Serves a bare repository at an address of the network namespace that it is made in."""

    def __init__(self, bare: Path, home: Path, address: str = "127.0.0.1") -> None:
        """Have it listen; `home` is its HOME."""
        port = find_free_port(address)
        where = (f"--port={port}", f"--base-path={bare.parent}", "--export-all")
        self.process = subprocess.Popen(
            ["git", "daemon", f"--listen={address}", *where, *OPTIONS],
            env={"PATH": os.environ["PATH"], "HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.url = f"git://{address}:{port}/{bare.name}"
        wait_for(lambda: listens(address, port), "git's daemon")

    def end(self) -> None:
        """End it, and those that serve for it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def listens(address: str, port: int) -> bool:
    """Whether somebody answers there."""
    with contextlib.suppress(OSError), socket.create_connection((address, port), 1):
        return True
    return False
