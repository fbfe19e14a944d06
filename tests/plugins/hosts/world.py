"""An installation and a node that it reaches by ssh: two clones of one hub, and one forge."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from sm.config.load import load
from sm.plugins.hosts.settings import SshHost
from sm.plugins.hosts.ssh.asking import Node
from sm.plugins.hosts.ssh.node import find_node
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from tests.conftest import end_tmux
from tests.e2e.stage import make_stage
from tests.helpers import REPOSITORY, git
from tests.plugins.hosts.conftest import end_link
from tests.sshd import Sshd
from tests.teardown import end_sessions

KEPT = ("PATH", "LANG", "VIRTUAL_ENV", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")


class World:
    """The installation is `stage`; the node's own is `there`."""

    def __init__(self, folder: Path, settings: dict[str, object], *, auto: bool) -> None:
        """Make both; nobody listens yet."""
        self.folder = folder
        self.stage = make_stage(folder, auto=auto, settings=settings)
        self.place = folder / "node"
        for name in ("", "home", "state"):
            (self.place / name).mkdir(mode=0o700)
        self.socket = f"sm-test-node-{os.getpid()}"
        git(folder, "clone", "-q", str(self.stage.repository.bare), str(self.place / "clone"))
        config = yaml.safe_load(self.stage.config.read_text())
        config |= {"repo": str(self.place / "clone"), "tmux_socket": self.socket}
        config |= {"state_root": str(self.place / "state")}
        self.config = self.place / "sm.yaml"
        self.config.write_text(yaml.safe_dump(config))
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.environment = kept | {
            "HOME": str(self.place / "home"),
            "SM_CONFIG": str(self.config),
            "SM_PYTHON": sys.executable,
        }
        self.sshd = Sshd(folder / "sshd", self.environment)
        self.sshd.start()
        self.host: dict[str, Any] = {
            "address": self.sshd.address,
            "sm": str(REPOSITORY / "bin" / "sm"),
            "options": self.sshd.options,
        }
        settings_here = yaml.safe_load(self.stage.config.read_text())
        settings_here |= {"hosts": {"ssh": {"box": self.host}}, "runner": "ssh"}
        self.stage.config.write_text(yaml.safe_dump(settings_here))

    @property
    def project(self) -> Project:
        """The project as the installation has it."""
        return self.stage.project

    @property
    def node(self) -> Node:
        """The host of the installation."""
        return find_node(self.project.config, "box")

    @property
    def root_there(self) -> Root:
        """The state root of the node."""
        return Root(self.place / "state")

    def sm_there(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Call the node's own `sm`, as somebody who has logged in there."""
        return subprocess.run(
            [str(REPOSITORY / "bin" / "sm"), *args],
            env=self.environment,
            cwd=self.place,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def project_there(self) -> Project:
        """The project as the node has it."""
        config = load(self.config, {}, self.place)
        return Project(config, config.projects[0])

    def session_there(self, issue: int) -> IssueSession:
        """The session of an issue as the node has it."""
        return registry.load_for(self.project_there, issue)

    def write_phase_there(self, issue: int, text: str) -> None:
        """What the agent there would do: `echo text > $PHASE_FILE`."""
        self.root_there.phase("harb", issue).write_text(f"{text}\n")

    def end_sessions_there(self) -> None:
        """End what runs on the node."""
        with patch.dict(os.environ, {"SM_TMUX_SOCKET": self.socket}):
            end_sessions(self.root_there)

    def end(self) -> None:
        """End all that runs for it."""
        root = self.project.root
        for folder in (root.plugins / "hosts").glob("*"):
            end_link(Node(root, folder.name, SshHost(address="nobody")))
        self.sshd.stop(cut=True)
        self.end_sessions_there()
        end_tmux(self.socket)
        self.stage.end()


@contextlib.contextmanager
def living(folder: Path, *, auto: bool, **settings: object) -> Iterator[World]:
    """Yield a world that ends with the block."""
    world = World(folder, settings, auto=auto)
    try:
        yield world
    finally:
        world.end()
