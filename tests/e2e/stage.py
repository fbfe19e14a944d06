"""A whole installation for a test: hub, clone, forge, configuration, puppet agents."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sm.adapters.forge.local import forge
from sm.adapters.forge.local.check_folder import CheckFolder
from sm.adapters.forge.model import ReviewState
from sm.adapters.shell_command import end_leftovers
from sm.base.issue_id import IssueId
from sm.sessions import agent, registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from tests.forked import run_sm
from tests.helpers import REPOSITORY as REPOSITORY
from tests.helpers import Repository, git, make_repository, open_project, wait_for
from tests.teardown import end_sessions

Env = dict[str, str]
PUPPET = Path(__file__).with_name("puppet.py")
NEXT_TICK = re.compile(r"^[0-9.]+\n\Z", re.MULTILINE)


@dataclass
class Stage:
    """Everything of one test, in one folder; `auto` agents follow the protocol by themselves."""

    folder: Path
    repository: Repository
    config: Path

    @property
    def project(self) -> Project:
        """The project, freshly loaded."""
        return open_project(self.config)

    def sm(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run `sm`, as the person or the monitor would."""
        done = run_sm(*args, env=self.environment, cwd=self.folder)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def poll(
        self, *, check: bool = True, env: Env | None = None
    ) -> subprocess.CompletedProcess[str]:
        """One tick, as `dev-poll --once` has it done; without the seconds until the next one."""
        done = run_sm("poll", env=self.environment | (env or {}), cwd=self.folder)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        done.stdout = NEXT_TICK.sub("", done.stdout)
        return done

    def run(
        self, *argv: str, check: bool, env: Env | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program with this stage's configuration."""
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            check=False,
            env=self.environment | (env or {}),
            cwd=self.folder,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    @property
    def environment(self) -> Env:
        """What a program of this stage is given."""
        return os.environ | {"SM_CONFIG": str(self.config), "SM_PYTHON": sys.executable}

    def file_issue(self, title: str = "Add a file", body: str = "Please.") -> int:
        """File an issue that is ready to be picked up."""
        made = self.project.forge.issues.add(title, body=body, labels=("backlog",), author="ada")
        return int(made.number)

    def session(self, issue: IssueId) -> IssueSession:
        """The session of an issue."""
        return registry.load_for(self.project, issue)

    def sessions(self) -> list[IssueSession]:
        """All sessions on record."""
        return registry.list_for(self.project)

    def told(self, kind: str = "message", session: str = "") -> list[str]:
        """What the agents were told, or wrote, in order; of one session or of all."""
        log = self.folder / "puppet.jsonl"
        if not log.exists():
            return []
        whole = log.read_text().rpartition("\n")[0]  # a long line may be on its way
        entries = [json.loads(line) for line in whole.split("\n") if line]
        mine = (entry for entry in entries if session in ("", entry["session"]))
        return [entry["text"] for entry in mine if entry["kind"] == kind]

    def agent_pid(self, issue: IssueId) -> int:
        """The process of the issue's agent."""
        found = wait_for(lambda: agent.load(self.session(issue).dir), "an agent")
        assert found is not None
        return found.pid

    def write_phase(self, issue: IssueId, text: str) -> None:
        """What the agent would do: `echo text > $PHASE_FILE`."""
        self.project.root.phase(self.project.name, issue).write_text(f"{text}\n")

    def push_work(self, issue: IssueId, name: str = "work.txt", content: str = "done\n") -> str:
        """Commit and push in the issue's worktree; returns the commit."""
        worktree = Path(self.session(issue).worktree)
        (worktree / name).write_text(content)
        git(worktree, "add", "-A")
        git(worktree, "commit", "-q", "-m", f"work on {issue}")
        git(worktree, "push", "-q", "origin", "HEAD")
        return git(worktree, "rev-parse", "HEAD")

    def approve(self, issue: IssueId) -> None:
        """Review the issue's pull request, as soon as there is one, and approve it."""
        branch = self.project.settings.branch(issue)
        pull = wait_for(lambda: self.project.forge.pulls.find_newest(branch), "a pull request")
        assert pull is not None
        self.project.forge.pulls.review(pull.number, ReviewState.APPROVED, author="rita")

    def find_need(self, kind: str) -> dict[str, Any]:
        """What waits for a person, as soon as there is one of that kind.

        A session may wait for a dev-poll as well: on a slow machine the last one is a minute ago.
        """

        def look() -> list[dict[str, Any]]:
            found = json.loads(self.sm("needs", "--json", check=False).stdout)
            return [one for one in found if one["kind"] == kind]

        [need] = wait_for(look, f"a need of the kind '{kind}'", every_s=0.5)
        return need

    def is_over(self, issue: IssueId) -> bool:
        """Whether the issue is closed and its session gone without a trace."""
        return self.project.forge.issues.read(issue).state == "closed" and not self.sessions()

    def merged(self, issue: IssueId) -> bool:
        """Whether the file that the puppet adds for the issue is in `main` of the hub."""
        listing = git(self.repository.bare, "ls-tree", "--name-only", "main")
        return f"work-{issue}.txt" in listing.split()

    def end(self) -> None:
        """End the CI commands, the agents and the monitors."""
        for place in (self.folder / "forge" / "checks").glob("*"):
            end_leftovers(CheckFolder(place).process)
        end_sessions(self.project.root)


def make_stage(folder: Path, *, auto: bool, settings: dict[str, object] | None = None) -> Stage:
    """Set an installation up; `settings` goes over the configuration's defaults."""
    repository = make_repository(folder)
    forge.create(folder / "forge", repository.bare)
    command = shlex.join([sys.executable, str(PUPPET)])
    agent_env = {"PUPPET_LOG": str(folder / "puppet.jsonl"), "PUPPET_AUTO": "1" if auto else "0"}
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        agent_env[name] = os.environ[name]
    config: dict[str, object] = {
        "name": "harb",
        "repo": str(repository.clone),
        "forge": {"kind": "local", "path": str(folder / "forge")},
        "agent": {"command": command, "env": agent_env},
        "ci": {"command": "test -f README.md", "poll": "1s"},
        "recovery": {"pause": "1s"},
        "poll_interval": "1s",
    }
    config |= settings or {}
    path = folder / "sm.yaml"
    path.write_text(yaml.safe_dump(config))
    return Stage(folder, repository, path)


def started(stage: Stage) -> int:
    """An issue whose agent has had its first prompt and waits."""
    issue = stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    return issue


def leave_merge(stage: Stage, issue: int) -> str:
    """Bring an issue to a merge that its agent never makes; returns the commit to merge.

    With `merge.remind` of a second it is reminded, and then a person is asked.
    """
    head = stage.push_work(issue)
    stage.write_phase(issue, "PHASE:awaiting_review")
    stage.approve(issue)
    return head


def count_merges(stage: Stage, issue: int) -> int:
    """How many commits in `main` of the hub have merged the issue's branch."""
    branch = stage.project.settings.branch(issue)
    merges = git(stage.repository.bare, "log", "--merges", "--format=%B", "main")
    return merges.count(branch)


def kill(pid: int) -> None:
    """End a process that this test has started, as a crash would."""
    os.kill(pid, signal.SIGKILL)
