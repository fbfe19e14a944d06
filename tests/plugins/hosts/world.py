"""An installation and nodes that it reaches by ssh: clones of one hub, and one forge."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from sm.adapters import procfs
from sm.adapters.procfs import Process
from sm.config.load import load
from sm.plugins.hosts.settings import SshHost
from sm.plugins.hosts.ssh.client import SshNode
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from tests.cable import BESIDE, Cable
from tests.conftest import end_tmux
from tests.e2e.stage import Stage, make_stage
from tests.gitdaemon import GitDaemon
from tests.helpers import REPOSITORY, git, wait_for
from tests.plugins.hosts.conftest import end_link, find_holder
from tests.sshd import Sshd, list_children
from tests.teardown import end_sessions

KEPT = (
    *("PATH", "LANG", "VIRTUAL_ENV", "SSL_CERT_FILE"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"),
)


class Machine:
    """A node: its own clone, configuration, state, tmux server and sshd."""

    def __init__(self, stage: Stage, name: str, cable: Cable | None = None) -> None:
        """Make it, at the far end of a cable if there is one, and have its sshd listen."""
        self.place = stage.folder / name
        for folder in ("", "home", "state"):
            (self.place / folder).mkdir(mode=0o700)
        self.socket = f"sm-test-{name}-{os.getpid()}"
        git(stage.folder, "clone", "-q", str(stage.repository.bare), str(self.place / "clone"))
        settings = yaml.safe_load(stage.config.read_text())
        settings |= {"repo": str(self.place / "clone"), "tmux_socket": self.socket}
        settings |= {"state_root": str(self.place / "state")}
        self.config = self.place / "sm.yaml"
        self.config.write_text(yaml.safe_dump(settings))
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.environment = kept | {
            "HOME": str(self.place / "home"),
            "SM_CONFIG": str(self.config),
            "SM_PYTHON": sys.executable,
        }
        where = (cable.far, cable.entry) if cable else ()
        self.sshd = Sshd(self.place / "sshd", self.environment, *where)
        self.sshd.start()

    @property
    def host(self) -> dict[str, Any]:
        """How the installation reaches it."""
        program = str(REPOSITORY / "bin" / "sm")
        return {"address": self.sshd.address, "sm": program, "options": self.sshd.options}

    @property
    def root(self) -> Root:
        """Its state root."""
        return Root(self.place / "state")

    @property
    def project(self) -> Project:
        """The project as it has it."""
        config = load(self.config, {}, self.place)
        return Project(config, config.projects[0])

    def session(self, issue: int) -> IssueSession:
        """The session of an issue there."""
        return registry.load_for(self.project, issue)

    def has_sessions(self) -> bool:
        """Whether any is on record there."""
        return bool(registry.list_session_names(self.root))

    def sm(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Call its own `sm`, as somebody who has logged in there."""
        return subprocess.run(
            [*self.sshd.entry, str(REPOSITORY / "bin" / "sm"), *args],
            env=self.environment,
            cwd=self.place,
            capture_output=True,
            text=True,
            check=False,
        )

    def write_phase(self, issue: int, text: str) -> None:
        """What the agent there would do: `echo text > $PHASE_FILE`."""
        self.root.phase("harb", issue).write_text(f"{text}\n")

    def processes(self) -> list[Process]:
        """All that runs there: its sshd, and whatever has its HOME."""
        mark = f"HOME={self.environment['HOME']}".encode()
        found = {process.pid: process for process in procfs.find_with_variable(mark)}
        if self.sshd.process:  # those who serve a login have no environment any more
            for pid in (self.sshd.process.pid, *list_children(self.sshd.process.pid)):
                if process := procfs.find(pid):
                    found[pid] = process
        return list(found.values())

    def kill(self) -> None:
        """Kill all of it at once, as a power cut would; its files stay."""
        wait_for(lambda: not self._signal(signal.SIGKILL), "the end of all its processes", 60)
        self.sshd.stop()

    def freeze(self) -> None:
        """Stop all of it, so that nothing of it runs and its connections stay open."""
        stopped = set[Process]()
        while new := set(self.processes()) - stopped:  # what was forked meanwhile
            procfs.send(new, signal.SIGSTOP)
            stopped |= new

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> list[Process]:
        found = self.processes()
        procfs.send(found, number)
        return found

    def end_sessions(self) -> None:
        """End what runs there."""
        with patch.dict(os.environ, {"SM_TMUX_SOCKET": self.socket}):
            end_sessions(self.root)

    def end(self) -> None:
        """End all of it."""
        self.sshd.stop(cut=True)
        self.end_sessions()
        end_tmux(self.socket)


class World:
    """The installation is `stage`; the first of its nodes is `box`."""

    def __init__(
        self,
        folder: Path,
        settings: dict[str, object],
        *,
        auto: bool,
        names: tuple[str, ...],
        cable: Cable | None,
    ) -> None:
        """Make all of them. With a cable, `box` is at its far end, and git's remote at ours."""
        folder.mkdir(exist_ok=True)
        hosts: dict[str, Any] = {"lost_after": settings.pop("lost_after", "10m")}
        self.stage = make_stage(folder, auto=auto, settings=settings)
        far = {"box": cable}
        self.machines = {name: Machine(self.stage, name, far.get(name)) for name in names}
        self.box = self.machines["box"]
        self._daemon = self._serve_git() if cable else None
        hosts["ssh"] = {name: one.host for name, one in self.machines.items()}
        said = yaml.safe_load(self.stage.config.read_text())
        self.stage.config.write_text(yaml.safe_dump(said | {"hosts": hosts, "runner": "ssh"}))

    @property
    def project(self) -> Project:
        """The project as the installation has it."""
        return self.stage.project

    def _serve_git(self) -> GitDaemon:
        """Have git's remote at an address that all machines reach."""
        daemon = GitDaemon(self.stage.repository.bare, self.stage.folder, BESIDE)
        clones = (one.place / "clone" for one in self.machines.values())
        for clone in (self.stage.repository.clone, *clones):
            git(clone, "remote", "set-url", "origin", daemon.url)
        return daemon

    def end(self) -> None:
        """End all that runs for it."""
        root = self.project.root
        end_listener(root)
        for folder in (root.plugins / "hosts").glob("[!.]*"):
            end_link(SshNode(root, folder.name, SshHost(address="nobody")))
        for machine in self.machines.values():
            machine.end()
        self.stage.end()
        if self._daemon:
            self._daemon.end()


def end_listener(root: Root) -> None:
    """End what hears of costs after a tick: it would start links again."""
    held = root.plugins / "cost" / "nodes.ticks.lock"
    if pid := find_holder(held):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def living(
    folder: Path,
    *,
    auto: bool,
    names: tuple[str, ...] = ("box",),
    cable: Cable | None = None,
    **settings: object,
) -> Iterator[World]:
    """Yield a world that ends with the block."""
    world = World(folder, settings, auto=auto, names=names, cable=cable)
    try:
        yield world
    finally:
        world.end()
