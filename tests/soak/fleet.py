"""Where `bin/soak hosts` runs: a controller, the forge, and hosts that are reached by a real ssh.

All share one machine, so each is known by the HOME that its processes have. git goes over a daemon
that is nobody's: what a host that dies was about to push ends with the connection, as elsewhere.

`bin/soak cut` has each host at the far end of a cable. There the forge, too, is reached by HTTP.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from sm.adapters.forge.model import BOT
from sm.issues.placements import list_placements
from sm.issues.runners import Placement
from tests.cable import BESIDE, Cable
from tests.e2e.stage import Stage
from tests.forges.server import make_certificate
from tests.forges.sides import RemoteSide, remote_side
from tests.gitdaemon import GitDaemon
from tests.helpers import git
from tests.hub import Hub
from tests.plugins.hosts.world import Machine
from tests.soak.room import Room

HOME = "home"
"""The controller, as the forge knows it."""
FORGE_LOCKS = (".lock", ".merging")
FREEZE_TRIES = 500


class Fleet:
    """A room that is the controller, and its hosts."""

    def __init__(self, room: Room) -> None:
        """Nothing of it exists before `build`."""
        self.room = room
        self.machines: dict[str, Machine] = {}
        self.cables: dict[str, Cable] = {}
        self._daemon: GitDaemon | None = None
        self._side: RemoteSide | None = None
        self._open = contextlib.ExitStack()
        self._lost = 0

    def build(
        self,
        settings: dict[str, object],
        *,
        hosts: int,
        sessions: int,
        lost_after: str,
        cables: Sequence[Cable] = (),
    ) -> None:
        """Make the controller with these settings, and have the sshd of each host listen.

        With a cable for each host, the forge is reached by HTTP, and knows who asks.
        """
        self.room.enter()
        self.room.build(settings)
        where = (BESIDE,) if cables else ()
        self._daemon = GitDaemon(self.room.repository.bare, self.room.ledger, *where)
        stage = Stage(self.room.disk, self.room.repository, self.room.config)
        git(self.room.repository.clone, "remote", "set-url", "origin", self._daemon.url)
        names = [f"host{number}" for number in range(1, hosts + 1)]
        self.cables = dict(zip(names, cables, strict=False))
        if cables:
            hub = Hub(self.room.config, self.room.project.settings, self.room.repository)
            certificate = make_certificate(self.room.disk, f"IP:{BESIDE}")
            os.environ["SSL_CERT_FILE"] = str(certificate)
            forge = remote_side("forgejo", hub, self.room.disk / "server", BESIDE, certificate)
            self._side = self._open.enter_context(forge)
        known: dict[str, Any] = {}
        for name in names:
            machine = self.machines[name] = Machine(stage, name, self.cables.get(name))
            git(machine.place / "clone", "remote", "set-url", "origin", self._daemon.url)
            shutil.copy(self.room.home / ".gitconfig", machine.place / "home")
            git(machine.place / "clone", "config", "user.name", name)
            known[name] = machine.host | {"sessions": sessions}
            self._connect(machine.config, name)
        self._connect(self.room.config, HOME)
        said = yaml.safe_load(self.room.config.read_text())
        section = {"ssh": known, "lost_after": lost_after}
        said |= {"hosts": section, "runner": "ssh"}
        self.room.config.write_text(yaml.safe_dump(said))

    @property
    def side(self) -> RemoteSide:
        """The forge, if it is reached by HTTP."""
        assert self._side, "this fleet has the forge of one machine"
        return self._side

    def _connect(self, config: Path, name: str) -> None:
        """Have a machine use the forge that is reached by HTTP, with a token of its own."""
        if self._side is None:
            return
        token = self._side.token_file(name)
        self._side.state.tokens[token.read_text()] = BOT
        place = {"kind": "forgejo", "repository": self._side.state.name, "url": self._side.site.url}
        said = yaml.safe_load(config.read_text()) | {"ci": {"poll": "1s"}}
        said["forge"] = place | {"token_file": str(token)}
        config.write_text(yaml.safe_dump(said))

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
        self._open.close()
        if self._daemon:
            self._daemon.end()
