"""The stage of `bin/demo --slurm`: sessions are jobs on two nodes of a cluster on this machine.

Each node has a HOME, a clone, a configuration and a disk of its own, as another machine would.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import cast
import yaml
from cast import Journey
from cluster import NODES, SBIN, Cluster, ClusterError
from msgspec import structs
from stage import GONE_S, LOOK_S, ROOT, DemoError, Plug, Stage

from sm.base.errors import SmError
from sm.base.issue_id import IssueId
from sm.config.load import load
from sm.issues.placements import read_placement
from sm.sessions.project import Project
from sm.store import journal
from sm.store.events import Placed
from sm.views.session_row import SessionRow
from sm.views.trace import Summary

AT_ONCE = 3
"""Licenses of the cluster: so many agents at a time, and the others wait in the queue."""
QUEUE = ("squeue", "--me", "--sort=i", "--format=%.4i %26j %10T %.6M  %R")
"""squeue(1): job, name, state, time used; the node, or the reason for which it waits."""
CANCELLED = "its job was cancelled with uncommitted work, and another job went on from there"


class NodesStage(Stage):
    """A stage whose sessions are jobs."""

    sockets = f"{NODES[0]}/tmux-{os.geteuid()}/sm-dev-{cast.NAME}-1-01234567"
    has_nodes = True

    def enter(self) -> None:
        """Make the directories, the nodes' too, and the files of the cluster."""
        super().enter()
        for node in NODES:
            for folder in ("", "home", "state", "tmp"):
                (self.path / node / folder).mkdir(mode=0o700)
        place = self.path / "cluster"
        place.mkdir(mode=0o700)
        self.cluster = Cluster(place, licenses=AT_ONCE, marks={"HOME": str(self.home)})
        os.environ["SLURM_CONF"] = str(self.cluster.config)
        os.environ["PATH"] += f":{SBIN}"

    def build(self, say: Callable[[str], None]) -> None:
        """Start the cluster, then as ever.

        Raises:
            DemoError: it does not come up.

        """
        say(f"munge, slurmctld, and slurmd for the nodes {' and '.join(NODES)}")
        try:
            self.cluster.start()
        except ClusterError as error:
            raise DemoError(f"the cluster does not come up: {error}") from error
        super().build(say)

    def _init(self) -> None:
        super()._init()
        known = yaml.safe_load(self.config.read_text())
        machine = ("state_root", "tmux_socket")
        on_node = {key: value for key, value in known.items() if key not in machine}
        for node in NODES:
            clone = self.path / node / cast.NAME
            self.run("git", "clone", "--quiet", str(self.hub), str(clone))
            told = yaml.safe_dump(on_node | {"repo": str(clone)}, allow_unicode=True)
            (self.path / node / "sm.yaml").write_text(told)
        section = {
            "sessions": len(cast.PARTS),
            "cpus": 1,
            "licenses": ["agents:1"],
            "sm": str(ROOT / "bin" / "sm"),
            "config": str(self.path / "%N" / "sm.yaml"),
            "state": str(self.path / "%N" / "state"),
            "prepare": self._write_environment(),
        }
        with_jobs = known | {"runner": "slurm", "slurm": section}
        self.config.write_text(yaml.safe_dump(with_jobs, allow_unicode=True))

    def _write_environment(self) -> str:
        """What a login on a node would set: none of it comes from here by itself."""
        told = {name: os.environ[name] for name in ("PATH", "LANG", "GIT_CONFIG_NOSYSTEM")}
        told |= {"SM_PYTHON": sys.executable, "SLURM_CONF": str(self.cluster.config)}
        told["GIT_CONFIG_GLOBAL"] = str(self.home / ".gitconfig")
        lines = [f"export {name}={shlex.quote(value)}" for name, value in told.items()]
        place = f'{shlex.quote(str(self.path))}/"$SLURMD_NODENAME"'
        return "\n".join(
            (*lines, f"export HOME={place}/home TMPDIR={place}/tmp TMUX_TMPDIR={place}")
        )

    @property
    def projects(self) -> Sequence[Project]:
        """The project here, and as each session's own `sm` on a node has it."""
        return [self.project, *(project for _, project in self._list_on_nodes())]

    def _list_on_nodes(self) -> list[tuple[str, Project]]:
        return [
            (node, self._open(node, root))
            for node in NODES
            for root in sorted((self.path / node / "state").glob("sm-*"))
        ]

    def _open(self, node: str, root: Path) -> Project:
        environ = {"SM_STATE_ROOT": str(root), "SM_TMUX_SOCKET": root.name}
        config = load(self.path / node / "sm.yaml", environ, self.path)
        return Project(config, config.projects[0])

    def read_summary(self, issue: IssueId) -> Summary:
        """What the nodes know of an issue, together; another attempt at it is a recovery."""
        found = []
        for _, project in self._list_on_nodes():
            try:
                found.append(self._summarise(project, issue))
            except SmError:  # another issue's
                continue
        if not found:
            return self._summarise(self.project, issue)
        placed = [
            event
            for event in journal.read(self.project.root.journal)
            if isinstance(event, Placed) and event.session.endswith(f"-{issue}")
        ]
        return structs.replace(
            max(found, key=lambda one: one.outcome == "merged"),
            took_s=sum(one.took_s for one in found),
            fixes=sum(one.fixes for one in found),
            rounds=sum(one.rounds for one in found),
            recoveries=sum(one.recoveries for one in found) + len(placed) - 1,
        )

    def find_plug(self, row: SessionRow) -> Plug | None:
        """Whoever may cancel jobs can do it at any moment."""
        placement = read_placement(self.project.directory, row.issue)
        if placement is None or not placement.handle or placement.attempt > 1:
            return None
        argv = ("scancel", placement.handle)
        why = f"#{row.issue} is at work on {row.host}, nothing committed"
        return Plug(" ".join(argv), why, lambda: self.run(*argv))

    def tell(self, journey: Journey) -> str:
        """How the summary tells what was to happen."""
        return CANCELLED if journey is Journey.KILLED else super().tell(journey)

    def read_queue(self) -> list[str]:
        """The jobs as `squeue` shows them."""
        return self.run(*QUEUE).splitlines()[1:]

    def end(self) -> None:
        """End dev-poll, let the jobs end, then the cluster."""
        self.end_poll()
        until = time.monotonic() + GONE_S
        while self.read_queue() and time.monotonic() < until:
            time.sleep(LOOK_S)
        self.cluster.stop()
        self.await_end()

    def list_marks(self) -> list[str]:
        """The variables of all that runs for the demo, here and on the nodes."""
        homes = [f"HOME={self.path / node / 'home'}" for node in NODES]
        return [*super().list_marks(), *homes, f"SLURM_CONF={self.cluster.config}"]
