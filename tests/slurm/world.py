"""An installation whose sessions are jobs: each node has a clone, a HOME and a disk of its own."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from sm.issues import placements
from sm.issues.runners import KnownState, Placement
from sm.plugins.hosts.slurm.queue import name_job
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from tests.conftest import end_tmux
from tests.e2e.stage import Stage, make_stage
from tests.helpers import REPOSITORY, git, wait_for
from tests.plugins.hosts.world import end_listener
from tests.slurm.cluster import NODES, Cluster
from tests.teardown import end_sessions

KEPT = ("PATH", "LANG", "VIRTUAL_ENV", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")


class World:
    """`stage` is the installation on the host from which jobs are submitted."""

    def __init__(self, folder: Path, cluster: Cluster, *, auto: bool, **slurm: object) -> None:
        """Set it up; `slurm` goes into that section."""
        self.folder, self.cluster = folder, cluster
        by_sm = {"merge": {"by": "sm"}, "review": {"required": False}}
        self.stage: Stage = make_stage(folder, auto=auto, settings=by_sm)
        known = yaml.safe_load(self.stage.config.read_text())
        for name in NODES:
            self._set_up_node(folder / name, known)
        section: dict[str, object] = {
            "sm": str(REPOSITORY / "bin" / "sm"),
            "config": str(folder / "%N" / "sm.yaml"),
            "state": str(folder / "%N" / "state"),
            "prepare": self._write_environment(),
            "licenses": ["agents:1"],
            "cpus": 1,
        }
        section |= slurm
        self.stage.config.write_text(yaml.safe_dump(known | {"runner": "slurm", "slurm": section}))

    def _set_up_node(self, folder: Path, known: dict[str, object]) -> None:
        for one in ("", "home", "state"):
            (folder / one).mkdir(mode=0o700)
        git(folder, "clone", "-q", str(self.stage.repository.bare), "clone")
        config = known | {"repo": str(folder / "clone"), "max_sessions": 4}
        (folder / "sm.yaml").write_text(yaml.safe_dump(config))

    def _write_environment(self) -> str:
        told = {name: os.environ[name] for name in KEPT if name in os.environ}
        told["SM_PYTHON"] = sys.executable
        lines = [f"export {name}={shlex.quote(value)}" for name, value in told.items()]
        home = f'export HOME={shlex.quote(str(self.folder))}/"$SLURMD_NODENAME"/home'
        # The nodes have one /tmp, and a tmux server of each would be that of both.
        tmux = f'export TMUX_TMPDIR={self.cluster.folder}/"$SLURMD_NODENAME"'
        return "\n".join((*lines, home, tmux))

    @property
    def project(self) -> Project:
        """The project as the installation has it."""
        return self.stage.project

    @property
    def placed(self) -> list[Placement]:
        """What is on record as placed."""
        return placements.list_placements(self.project.directory)

    @property
    def seen(self) -> list[KnownState]:
        """What the last tick has seen."""
        return list(placements.read_seen(self.project.directory).values())

    def root_on(self, node: str, issue: int) -> Root:
        """The state root of an issue's sessions on a node."""
        name = name_job(self.project.root, f"dev-harb-{issue}")
        return Root(self.folder / node / "state" / name)

    def session_on(self, node: str, issue: int) -> IssueSession | None:
        """The session of an issue on a node; None if there is none."""
        found = registry.find(self.root_on(node, issue), f"dev-harb-{issue}")
        return found if isinstance(found, IssueSession) else None

    def find_node(self, issue: int) -> str:
        """Where the issue has a session; '' for nowhere."""
        return next((node for node in NODES if self.session_on(node, issue)), "")

    def find_other(self, node: str, issue: int) -> str:
        """Where else than on a node the issue has a session; '' for nowhere."""
        others = (one for one in NODES if one != node and self.session_on(one, issue))
        return next(others, "")

    def freeze(self, node: str) -> None:
        """Stop all of a node, at a moment at which it holds nothing that others wait for.

        That is so only because the forge is a folder, which no two machines share.
        """
        wait_for(lambda: self._try_freeze(node), "a moment to freeze it")

    def _try_freeze(self, node: str) -> bool:
        for _ in range(3):  # what was begun meanwhile, too
            self.cluster.signal(node, self.folder / node, signal.SIGSTOP)
        stopped = self.cluster.find_processes(node, self.folder / node)
        shared = {one.stat().st_ino for one in (self.folder / "forge").rglob("*")}
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.replace("-> ", "").split()
            if int(words[4]) in stopped and int(words[5].rpartition(":")[2]) in shared:
                self.thaw(node)
                return False
        return True

    def thaw(self, node: str) -> None:
        """Have all of a node go on."""
        self.cluster.signal(node, self.folder / node, signal.SIGCONT)

    def end(self) -> None:
        """End what runs for it, whatever Slurm knows of that."""
        end_listener(self.project.root)
        self.cluster.call("scancel", f"--user={os.geteuid()}")
        with pytest.MonkeyPatch.context() as patch:
            for node in NODES:
                patch.setenv("TMUX_TMPDIR", str(self.cluster.folder / node))
                for place in (self.folder / node / "state").glob("sm-*"):
                    patch.setenv("SM_TMUX_SOCKET", place.name)
                    end_sessions(Root(place))
                    end_tmux(place.name)
        self.stage.end()


@contextlib.contextmanager
def living(folder: Path, cluster: Cluster, *, auto: bool, **slurm: object) -> Iterator[World]:
    """Yield a world that ends with the block."""
    world = World(folder, cluster, auto=auto, **slurm)
    try:
        yield world
    finally:
        world.end()


def poll_until(world: World, condition: Callable[[], object], what: str) -> None:
    """Have dev-poll tick until then."""

    def look() -> object:
        if condition():
            return True
        world.stage.poll()
        return condition()

    wait_for(look, what, every_s=0.3)


def begin(world: World) -> int:
    """An issue whose agent has its first prompt, in a job."""
    issue = world.stage.file_issue()
    world.stage.poll()
    wait_for(world.stage.told, "the first prompt")
    return issue


def begin_half(world: World) -> int:
    """An issue whose agent has written half of its work, which is in no commit."""
    issue = begin(world)
    _locate_half(world, issue).write_text("half\n")
    return issue


def has_half(world: World, issue: int) -> bool:
    """Whether the agent that works on the issue now has what another has left half done."""
    return _locate_half(world, issue).read_text() == "half\n"


def _locate_half(world: World, issue: int) -> Path:
    session = world.session_on(world.find_node(issue), issue)
    assert session
    return session.worktree / "half.txt"


def find_request(world: World) -> re.Match[str] | None:
    """The request for a handoff document that the agent has got."""
    return re.search(
        r"Create handoff document now - this machine's time is over soon\n"
        r"Write it to (?P<path>\S+\.md)\. Headings: (?P<headings>[^.]+)\.",
        world.stage.told()[-1],
    )


def write_document(asked: re.Match[str]) -> str:
    """Write what that request asks for; return it."""
    headings = asked["headings"].split(", ")
    text = "".join(f"## {heading}\nthe cart is half done\n\n" for heading in headings)
    Path(asked["path"]).write_text(text)
    return text


MakeWorld = Callable[..., World]
