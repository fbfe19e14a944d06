"""A project and a session on disk, for tests of a plugin. Nothing runs: no terminal, no agent."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from sm.adapters import procfs
from sm.adapters.forge.local import forge
from sm.base.issue_id import IssueId
from sm.config.load import load
from sm.issues.look import phase_file
from sm.sessions import plan, registry
from sm.sessions.history import Receipt, StepVerb
from sm.sessions.project import Project
from sm.sessions.record import IssueRecord
from sm.sessions.session import IssueSession
from sm.store.paths import name_session

NAME = "testing"
SOMEBODY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")


def make_project(folder: Path, settings: Mapping[str, object] | None = None) -> Project:
    """A project in `folder`, with a clone, an embedded forge and a state root of its own.

    `settings` are keys of its configuration. Plugins in it are those that are installed.
    """
    bare, clone, state = folder / "hub.git", folder / "clone", folder / "state"
    state.mkdir(mode=0o700)
    _git("init", "-q", "--bare", "-b", "main", str(bare))
    _git("clone", "-q", str(bare), str(clone))
    _git("-C", str(clone), *SOMEBODY, "commit", "-q", "--allow-empty", "-m", "begin")
    _git("-C", str(clone), "push", "-q", "origin", "HEAD:main")
    forge.create(folder / "forge", bare)
    config = {
        "name": NAME,
        "repo": str(clone),
        "state_root": str(state),
        "forge": {"kind": "local", "path": str(folder / "forge")},
        **(settings or {}),
    }
    path = folder / "sm.yaml"
    path.write_text(json.dumps(config))
    found = load(path, os.environ, folder)
    return Project(found, found.projects[0])


def _git(*words: str) -> None:
    subprocess.run(["git", *words], check=True, capture_output=True)


def put_session(
    project: Project,
    issue: IssueId,
    title: str = "Mend it",
    *,
    phase: str = "",
    age_s: float = 100.0,
    receipts: tuple[Receipt, ...] | None = None,
    alive: bool = True,
) -> IssueSession:
    """A session on disk as a started one looks; this very process stands in for its agent."""
    root, settings = project.root, project.settings
    created = time.time() - age_s
    session = IssueSession(
        IssueRecord(
            name=name_session(settings.name, issue),
            project=settings.name,
            issue=issue,
            title=title,
            branch=settings.branch(issue),
            base=settings.primary_branch,
            remote=settings.remote,
            repo=settings.repo,
            provider="generic",
            cwd=settings.worktree(issue),
            config=project.config.source,
            state_root=root.path,
            created_at=created,
        )
    )
    registry.create(root, session).provide(project=project)
    start = Receipt(created, "start", "start", verb=StepVerb.START)
    for receipt in (start,) if receipts is None else receipts:
        plan.add_receipt(session.dir, receipt)
    phase_file.create(root, settings.name, issue)
    if phase:
        root.phase(settings.name, issue).write_text(phase)
    agent = procfs.find(os.getpid())
    if alive and agent:
        session.dir.agent_pid.write_text(f"{agent.pid} {agent.started}\n")
        session.dir.agent_pid.chmod(0o600)
    return session
