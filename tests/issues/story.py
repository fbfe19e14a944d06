"""Ten issues from the push to the merge, on one machine or on five: what the forge is asked.

Passes are made here, one after another, by what a pass calls to look; nobody's agent runs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import json, structs

from sm.adapters.forge.model import BOT, CheckState, PullState, ReviewState
from sm.config.load import load
from sm.issues.look import snapshot, wishes
from sm.issues.look.look_share import LookShare
from sm.issues.look.observe import Observation, observe
from sm.issues.look.snapshot import snapshot_as_wished
from sm.issues.look.wishes import Ear
from sm.issues.runners import Placement
from sm.plugins.hosts.dispatch.bearer import MakeShare, bring
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from tests.e2e.stage import Stage
from tests.forges.server import Asked
from tests.forges.sides import RemoteSide
from tests.helpers import put_session, wait_for
from tests.issues.farm import Farm

WRITES = ("POST", "PUT", "PATCH", "DELETE")
QUERIES = ("/graphql",)
HEAR_S = 0.01
LATER_S = 0.05
"""A real tick begins later than that after a wish."""


@dataclass
class Machine:
    """An installation with a state root and a token of its own."""

    name: str
    stage: Stage
    side: RemoteSide
    sessions: list[IssueSession] = field(default_factory=list)

    @property
    def project(self) -> Project:
        """The project as a process of it would open it."""
        place = {"SM_STATE_ROOT": str(self.folder)}
        config = load(self.stage.config, os.environ | place, self.stage.folder)
        forge = structs.replace(self.side.project.forge, token_file=self.token_file)
        return Project(config, structs.replace(config.projects[0], forge=forge))

    @property
    def folder(self) -> Path:
        """Its state root."""
        path = self.stage.folder / f"state-{self.name}"
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    @property
    def token(self) -> str:
        """Its token, which is of the same account as those of the others."""
        return f"token-on-{self.name}-4f1d"

    @property
    def token_file(self) -> Path:
        """Where it is."""
        file = self.stage.folder / f"token-{self.name}"
        if not file.exists():
            self.side.state.tokens[self.token] = BOT
            file.touch(mode=0o600)
            file.write_text(self.token)
        return file

    def add(self, issue: int) -> None:
        """Have a session of the issue."""
        self.sessions.append(put_session(self.project, issue))

    def count(self) -> Count:
        """What the forge was asked by it."""
        mine = [
            one
            for one in self.side.site.asked
            if self.token in one.headers.get("authorization", "")
        ]
        return Count(sum(not is_write(one) for one in mine), sum(map(is_write, mine)))


@dataclass(frozen=True)
class Count:
    """Requests that ask, and those that change something."""

    reads: int = 0
    writes: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.reads + other.reads, self.writes + other.writes)

    @property
    def all(self) -> int:
        """All of them."""
        return self.reads + self.writes


def is_write(asked: Asked) -> bool:
    """Whether others may see something of a request."""
    is_query = asked.path.endswith(QUERIES) and "mutation" not in asked.body.decode()
    return asked.method in WRITES and not is_query


class Herd(Farm):
    """A runner that reaches its nodes in this process."""

    def __init__(self, nodes: Mapping[str, Machine]) -> None:
        """By their names."""
        self.nodes = nodes

    def bring(self, project: Project, placements: Sequence[Placement], make: MakeShare) -> None:
        """Bring each what concerns its sessions."""
        for name, node in self.nodes.items():
            issues = [one.issue for one in placements if one.host == name]
            share = json.decode(json.encode(make(issues)), type=LookShare)
            snapshot.adopt(node.project, share)


class World:
    """The machine `home`, and nodes, on which the sessions are, if there are any."""

    def __init__(self, stage: Stage, side: RemoteSide, issues: Sequence[int], hosts: int) -> None:
        """Have the sessions; with hosts each has as many."""
        self.stage, self.side = stage, side
        self.home = Machine(f"home-{hosts}", stage, side)
        names = [f"box{number}" for number in range(hosts)]
        self.nodes = {name: Machine(name, stage, side) for name in names}
        self.workers = [*self.nodes.values()] or [self.home]
        self.placed: list[Placement] = []
        for place, issue in enumerate(issues):
            worker = self.workers[place % len(self.workers)]
            worker.add(issue)
            made = Placement("harb", issue, f"dev-harb-{issue}", "herd", worker.name, 1, "c" * 40)
            self.placed.append(made)

    def look(self) -> None:
        """The interval is over: home looks, and brings it."""
        self.home.project.directory.look_wanted.touch()
        self._tick()

    def _tick(self) -> None:
        project = self.home.project
        wanted = time.time()
        wait_for(lambda: time.time() > wanted + LATER_S, "a later moment", every_s=0.01)
        seen = snapshot_as_wished(project)
        if self.nodes:
            said = list(
                bring(
                    project,
                    seen,
                    Herd(self.nodes),
                    self.placed,
                    hears_wishes=True,
                    sharers=1 + len(self.nodes),
                )
            )
            assert not said, said

    @contextmanager
    def granting(self, *, answers: bool = True) -> Iterator[None]:
        """Have home grant wishes meanwhile; else it is away."""
        ears = {name: Ear(node.project.root) for name, node in self.nodes.items()}
        over = threading.Event()

        def grant() -> None:
            while not over.is_set():
                over.wait(HEAR_S)
                for node in self.nodes.values():
                    for name in wishes.hear(node.project.root, os.getpid(), 0.0):
                        wishes.note(self.home.project.root, name)
                        self._tick()

        thread = threading.Thread(target=grant)
        if answers and self.nodes:
            thread.start()
        try:
            yield
        finally:
            over.set()
            if thread.ident:
                thread.join()
            for ear in ears.values():
                ear.close()

    @property
    def sessions(self) -> list[tuple[Machine, IssueSession]]:
        """Each with its machine."""
        return [(worker, one) for worker in self.workers for one in worker.sessions]

    def count(self) -> Count:
        """What the forge was asked by all."""
        return sum((one.count() for one in (self.home, *self.nodes.values())), Count())


def pass_over(machine: Machine, session: IssueSession, newer_than: float = 0.0) -> Observation:
    """Look as a pass does, in a process of its own."""
    return observe(session.provide(project=machine.project), newer_than=newer_than)


def write_phase(machine: Machine, session: IssueSession, phase: str) -> None:
    """What its agent does."""
    machine.project.root.phase("harb", session.issue).write_text(f"{phase}\n")


def play(world: World) -> None:
    """Bring all issues from the push to the merge."""
    side = world.side
    world.look()
    for machine, session in world.sessions:
        head = side.push(session.record.branch, f"work-{session.issue}.txt")
        write_phase(machine, session, "PHASE:awaiting_ci")
        assert pass_over(machine, session).facts.head == head
        forge = machine.project.forge
        forge.pulls.open(session.record.branch, "main", f"Do {session.issue}", author=BOT)
        seen = pass_over(machine, session, time.time())
        assert seen.facts.pull is PullState.OPEN
    for _, session in world.sessions:
        side.finish(side.state.heads()[session.record.branch], CheckState.SUCCESS)
    world.look()
    for machine, session in world.sessions:
        assert pass_over(machine, session).facts.check is CheckState.SUCCESS
        write_phase(machine, session, "PHASE:awaiting_review")
        pass_over(machine, session)
        pull = side.open().pulls.find_newest(session.record.branch)
        assert pull
        side.open().pulls.review(pull.number, ReviewState.APPROVED, author="rita")
    world.look()
    for machine, session in world.sessions:
        found = pass_over(machine, session)
        assert found.facts.review is ReviewState.APPROVED
        assert found.pull
        forge = machine.project.forge
        forge.pulls.merge(found.pull.number, head=found.facts.head, author=BOT)
        assert pass_over(machine, session, time.time()).facts.merged
        forge.issues.close(session.issue)
