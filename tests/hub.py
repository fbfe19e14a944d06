"""An embedded forge beside a bare repository and a clone, as a project has it."""

from __future__ import annotations

import functools
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sm.adapters.forge.local.forge import LocalForge, create, open_forge
from sm.config.load import load
from sm.config.schema import ProjectSettings
from sm.sessions.project import Project
from sm.store.lock import is_held
from sm.testing.forge import push
from tests.forked import run_sm
from tests.helpers import Repository, git, make_repository, wait_for

PENDING = "pending"


@dataclass(frozen=True)
class Hub:
    """Everything of one project."""

    config: Path
    project: ProjectSettings
    repository: Repository

    @property
    def folder(self) -> Path:
        """The forge's folder."""
        return Path(self.project.forge.place)

    def open(self) -> LocalForge:
        """The forge as a process of its own would open it: nothing remembered."""
        return open_forge(self.project, self.config)

    def push(self, branch: str, name: str = "work.txt", content: str = "work\n") -> str:
        """What a push of a new commit brings: a change on `branch`, or a branch made from main.

        Returns the commit. The clone knows nothing of it before `check_out`: a commit and a push
        there are a dozen processes.
        """
        return push(self.repository.bare, branch, name, content)

    def check_out(self, branch: str) -> None:
        """Have the clone go on with a branch of the remote."""
        git(self.repository.clone, "fetch", "-q", "origin")
        git(self.repository.clone, "checkout", "-q", branch)

    def main(self) -> str:
        """The commit that main is at on the forge."""
        return git(self.repository.bare, "rev-parse", "main")

    def checked(self, head: str) -> str:
        """The state of the checks of `head` once they have ended, and their runner with them."""
        forge = self.open()
        forge.checks.ensure(head)
        wait_for(lambda: forge.checks.read(head).state != PENDING, "the end of CI")
        for lock in self.folder.parent.rglob(f"checks/{head}/lock"):
            wait_for(functools.partial(_is_free, lock), "the end of its runner")
        return forge.checks.read(head).state

    def edit(self, name: str, old: str, new: str) -> None:
        """What a person does to a file of the forge with an editor."""
        path = self.folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    def sm(
        self, *args: str, stdin: str = "", cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line on it."""
        words = ("--config", str(self.config), *args)
        return run_sm(*words, env=os.environ, cwd=cwd or Path.cwd(), stdin=stdin)


def make_hub(folder: Path, *, ci: str = "", review: bool = False) -> Hub:
    """A project with an embedded forge; no review is required unless `review`."""
    repository = make_repository(folder)
    create(folder / "forge", repository.bare)
    config, state = folder / "sm.yaml", folder / "state"
    state.mkdir(mode=0o700, exist_ok=True)
    config.write_text(
        f"name: harb\nrepo: {repository.clone}\nstate_root: {state}\n"
        f"forge: {{kind: local, path: {folder / 'forge'}}}\n"
        f"review: {{required: {str(review).lower()}}}\n"
        f"ci:\n  timeout: 30s\n  command: |\n    {ci}\n"
    )
    project = load(config, os.environ, folder).projects[0]
    return Hub(config, project, repository)


def local_forge(project: Project) -> LocalForge:
    """The forge of a project that is known to have the embedded one."""
    forge: object = project.forge
    assert isinstance(forge, LocalForge)
    return forge


def _is_free(lock: Path) -> bool:
    return not is_held(lock)
