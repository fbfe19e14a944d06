"""A project with budgets, and sessions whose agents have written down what they used."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import yaml

from sm.adapters.agent.claude import CLAUDE
from sm.config.load import load
from sm.plugins.cost import follower
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.record import AdHocRecord, IssueRecord
from sm.sessions.session import AdHocSession, AnySession, IssueSession
from sm.store.files import ensure_private_dir
from sm.store.paths import name_session
from tests.plugins.cost.lines import add_lines, write_answer

OUTPUT_OF_A_DOLLAR = 40_000
"""Tokens of claude-opus-4-5's answers; the rest of `write_answer` is below a thousandth of that."""


def open_project(
    folder: Path,
    budget: str,
    machine: str = "{}",
    ledger: Path | None = None,
    root: Path | None = None,
) -> Project:
    """A project with that section `budget`, and the machine's, both as `{issue: $1}`."""
    ensure_private_dir(folder / "repo")
    file = folder / "c.yaml"
    projects: dict[str, dict[str, Any]] = {
        name: {
            "name": name,
            "repo": str(folder / place),
            "forge": {"kind": "local", "path": str(folder / f"{place}-forge")},
        }
        for name, place in (("shop", "repo"), ("other", "other"))
    }
    projects["shop"]["budget"] = yaml.safe_load(budget)
    content = {"budget": yaml.safe_load(machine), "projects": list(projects.values())}
    content |= {"state_root": str(root)} if root else {}
    content |= {"cost": {"ledger": str(ledger)}} if ledger else {}
    file.write_text(yaml.safe_dump(content))
    config = load(file, os.environ, folder)
    settings = config.project("shop")
    assert settings
    return Project(config, settings)


def begin(project: Project, issue: int, ago_s: float = 100.0) -> IssueSession:
    """A session of Claude Code for an issue, whose first context has begun."""
    root = project.root
    ensure_private_dir(root.private)
    ensure_private_dir(root.plugins / "cost")
    record = IssueRecord(
        name=name_session(project.name, issue),
        provider=CLAUDE.name,
        cwd=project.settings.repo,
        config=project.config.source,
        state_root=root.path,
        created_at=time.time() - ago_s,
        project=project.name,
        issue=issue,
        title="t",
        branch=f"fix/{issue}",
        base="main",
        remote="origin",
        repo=project.settings.repo,
    )
    session = registry.create(root, IssueSession(record))
    session.provide(project=project, profile=CLAUDE)
    begin_context(session, f"{project.name}-{issue}-a")
    return session


def begin_ad_hoc(project: Project, name: str) -> AdHocSession:
    """A session of `sm new`."""
    ensure_private_dir(project.root.plugins / "cost")
    record = AdHocRecord(
        name=name,
        provider=CLAUDE.name,
        cwd=project.settings.repo,
        config=project.config.source,
        state_root=project.root.path,
        created_at=time.time() - 100,
        command="claude",
        alias="ann",
    )
    session = registry.create(project.root, AdHocSession(record)).provide(profile=CLAUDE)
    begin_context(session, f"{name}-a")
    return session


def begin_context(session: AnySession, ident: str) -> Path:
    """What the hook of a new context writes; returns the transcript."""
    path = session.record.cwd / f"{ident}.jsonl"
    start = {"session_id": ident, "source": "startup", "transcript_path": str(path)}
    session.dir.context.write_text(json.dumps(start))
    with session.dir.events.open("a") as events:
        events.write(f"{time.time():.6f} SessionStart {ident} startup\n")
    return path


def write(
    session: AnySession,
    ident: str,
    *,
    dollars: float = 0.0,
    context: str = "a",
    read: bool = True,
    model: str = "claude-opus-4-5",
    at: float | None = None,
) -> None:
    """The agent writes down an answer of that price; with `read` a follower reads it at once."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() if at is None else at))
    named = f"{session.project_name}-{session.issue}" if session.issue else session.name
    line = write_answer(ident, output=int(dollars * OUTPUT_OF_A_DOLLAR), at=moment, model=model)
    add_lines(session.record.cwd / f"{named}-{context}.jsonl", [line])
    if read:
        follower.follow(session)
