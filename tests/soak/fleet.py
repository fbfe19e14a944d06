"""Where `bin/soak hosts` runs: a controller, the forge, and hosts that are reached by a real ssh.

All share one machine, so each is known by the HOME that its processes have. git goes over a daemon
that is nobody's: what a host that dies was about to push ends with the connection, as elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sm.issues.placements import list_placements
from sm.issues.runners import Placement
from tests.e2e.stage import Stage
from tests.helpers import git, wait_for
from tests.plugins.hosts.world import Machine
from tests.soak.room import Room
from tests.sshd import find_port

FORGE_LOCKS = (".lock", ".merging")
FREEZE_TRIES = 500
GIT_DAEMON = ("--enable=receive-pack", "--max-connections=0")
"""git-daemon(1): it takes pushes, from as many at once as come."""


class Fleet:
    """A room that is the controller, and its hosts."""

    def __init__(self, room: Room) -> None:
        """Nothing of it exists before `build`."""
        self.room = room
        self.machines: dict[str, Machine] = {}
        self._daemon: subprocess.Popen[bytes] | None = None
        self._url = ""
        self._lost = 0

    def build(
        self, settings: dict[str, object], *, hosts: int, sessions: int, lost_after: str
    ) -> None:
        """Make the controller with these settings, and have the sshd of each host listen."""
        self.room.enter()
        self.room.build(settings)
        self._serve_git()
        stage = Stage(self.room.disk, self.room.repository, self.room.config)
        git(self.room.repository.clone, "remote", "set-url", "origin", self._url)
        known: dict[str, Any] = {}
        for number in range(1, hosts + 1):
            name = f"host{number}"
            machine = self.machines[name] = Machine(stage, name)
            git(machine.place / "clone", "remote", "set-url", "origin", self._url)
            shutil.copy(self.room.home / ".gitconfig", machine.place / "home")
            known[name] = machine.host | {"sessions": sessions}
        said = yaml.safe_load(self.room.config.read_text())
        section = {"ssh": known, "lost_after": lost_after}
        said |= {"hosts": section, "runner": "ssh"}
        self.room.config.write_text(yaml.safe_dump(said))

    def _serve_git(self) -> None:
        """Offer the remote by a process of its own."""
        bare, port = self.room.repository.bare, find_port()
        where = (f"--port={port}", f"--base-path={bare.parent}", "--export-all")
        self._daemon = subprocess.Popen(
            ["git", "daemon", "--listen=127.0.0.1", *where, *GIT_DAEMON],
            env={"PATH": os.environ["PATH"], "HOME": str(self.room.ledger)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._url = f"git://127.0.0.1:{port}/{bare.name}"
        wait_for(lambda: _listens(port), "git's daemon")

    def list_placed(self) -> list[Placement]:
        """What is worked on, and where."""
        return list_placements(self.room.project.directory)

    def freeze(self, machine: Machine) -> None:
        """Stop a host, but never one that holds a lock of the forge: a real one would go on."""
        for _ in range(FREEZE_TRIES):
            machine.freeze()
            held = {process.pid for process in machine.processes()} & set(self._list_holders())
            if not held:
                return
            machine.thaw()
            time.sleep(0.01)
        raise AssertionError("the host holds the forge's lock all the time")

    def _list_holders(self) -> Iterator[int]:
        inodes = set[str]()
        for name in FORGE_LOCKS:
            with contextlib.suppress(OSError):
                inodes.add(str((self.room.disk / "forge" / name).stat().st_ino))
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.replace("->", "").split()
            if words[5].rpartition(":")[2] in inodes:
                yield int(words[4])

    def lose_state(self, machine: Machine) -> None:
        """Take the state of a host away that does not run; it is kept for who looks afterwards."""
        self._lost += 1
        aside = self.room.kept / f"{machine.place.name}-{self._lost}"
        machine.root.path.rename(aside)
        machine.root.path.mkdir(mode=0o700)

    def end(self) -> None:
        """End all that runs for it."""
        for machine in self.machines.values():
            machine.thaw()
            machine.kill()
            machine.end()
        self.room.kill_all()
        if self._daemon:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._daemon.pid, signal.SIGKILL)
            self._daemon.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
