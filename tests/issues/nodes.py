"""Two installations that share a remote and a forge: who places work, and a node that does it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from sm.adapters.forge.model import Issue
from sm.config.load import load
from sm.issues.runners import Placement
from sm.issues.start import HeldClaim, put_on_record
from sm.issues.work.furnish import make_ready
from sm.issues.work.takeover import claim_for
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from tests.conftest import end_tmux
from tests.e2e.stage import Stage
from tests.helpers import Repository, git
from tests.teardown import end_sessions

BEGIN = """
import os, sys
from pathlib import Path
from sm.config.load import load
from sm.issues.start import begin_placed
from sm.sessions.project import Project
config = load(None, os.environ, Path.cwd())
begin_placed(Project(config, config.projects[0]), int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
"""


@dataclass
class Node:
    """A machine of its own, as far as `sm` can see: state root, clone, configuration, tmux."""

    folder: Path
    stage: Stage

    @property
    def environment(self) -> dict[str, str]:
        """What a program of the node is given."""
        place = {"SM_STATE_ROOT": str(self.folder / "state"), "SM_CONFIG": str(self.config)}
        return self.stage.environment | place | {"SM_TMUX_SOCKET": self.socket}

    @property
    def socket(self) -> str:
        """Its tmux server."""
        return f"{os.environ.get('SM_TMUX_SOCKET', 'sm-test')}-{self.folder.name}"

    @property
    def config(self) -> Path:
        """Its configuration."""
        return self.folder / "sm.yaml"

    @property
    def project(self) -> Project:
        """The project, freshly loaded."""
        config = load(self.config, self.environment, self.folder)
        return Project(config, config.projects[0])

    @property
    def repository(self) -> Repository:
        """Its clone, and the remote."""
        return Repository(self.stage.repository.bare, self.folder / "clone")

    def put_on_record(self, placement: Placement) -> IssueSession:
        """A session as `begin_placed` leaves it, without an agent."""
        project = self.project
        issue = project.forge.issues.read(placement.issue)
        session = put_on_record(project, issue, HeldClaim(placement.attempt, placement.claim))
        make_ready(session)
        return session

    def begin(self, placement: Placement) -> None:
        """What a runner does there: begin the session, with an agent and a monitor."""
        words = (str(placement.issue), str(placement.attempt), placement.claim)
        self.stage.run(sys.executable, "-c", BEGIN, *words, check=True, env=self.environment)

    def end(self) -> None:
        """End what runs there."""
        end_sessions(Root(self.folder / "state"))
        end_tmux(self.socket)

    def sessions(self) -> list[IssueSession]:
        """Return what is on record there."""
        return registry.list_for(self.project)

    def session(self, issue: int) -> IssueSession:
        """The session of an issue, freshly loaded."""
        return registry.load_for(self.project, issue)


def make_node(stage: Stage, name: str, **settings: object) -> Node:
    """Set a node up beside the installation of `stage`."""
    node = Node(stage.folder / name, stage)
    (node.folder / "state").mkdir(parents=True, mode=0o700)
    git(node.folder, "clone", "-q", str(stage.repository.bare), "clone")
    known = yaml.safe_load(stage.config.read_text())
    settings = {"repo": str(node.folder / "clone"), "max_sessions": 4} | settings
    node.config.write_text(yaml.safe_dump(known | settings))
    return node


def file_and_claim(stage: Stage, host: str = "one") -> tuple[Issue, Placement]:
    """An issue that is claimed for a session on `host`."""
    issue = stage.project.forge.issues.read(stage.file_issue())
    placement = claim_for(stage.project, issue.number, "elsewhere", host)
    assert placement is not None
    return issue, placement
