"""Contexts that are replaced in several projects at the same time, each at its own threshold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from sm.adapters.forge.local import forge as local
from sm.config.load import load
from sm.context.health_log import read_recent
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from tests.company import peers_log, profiles
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage
from tests.helpers import HANG_S, git, make_repository, wait_for

PROJECTS = {"harb": 85, "mole": 60, "pier": None}
"""At how many percent a cycle begins in each."""
ASKED, RESUMED = "Create handoff document now", "Read handoff from"


@pytest.fixture
def stage(stage_of: MakeStage, tmp_path: Path) -> Stage:
    """Three projects of one configuration, and an agent with hooks on an issue of each."""
    made = stage_of()
    env = {name: os.environ[name] for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")}
    agents = {"profile": "peer", "command": "", "env": env}
    common = {"agent": agents, "ci": {"command": "true", "poll": "1s"}, "poll_interval": "1s"}
    projects = [project(tmp_path, name) for name in PROJECTS]
    config = {"profiles": profiles(tmp_path), "projects": projects} | common
    made.config.write_text(yaml.safe_dump(config))
    for name in PROJECTS:
        context(made, name).forge.issues.add("Add it", body="", labels=("backlog",), author="ada")
    made.poll()
    for name in PROJECTS:
        wait_told(made, name, "")
    return made


def project(folder: Path, name: str) -> dict[str, object]:
    """What the configuration says of it: a hub, a clone and a forge of its own."""
    place = folder / name
    place.mkdir()
    repository = make_repository(place)
    local.create(place / "forge", repository.bare)
    level = PROJECTS[name]
    cycle = {"enabled": False} if level is None else {"percentage": level}
    forge = {"kind": "local", "path": str(place / "forge")}
    clone = str(repository.clone)
    return {"name": name, "repo": clone, "forge": forge, "handoff_cycle": cycle}


def context(stage: Stage, name: str) -> Project:
    config = load(stage.config, os.environ, stage.folder)
    return Project(config, next(one for one in config.projects if one.name == name))


def session(stage: Stage, name: str) -> IssueSession:
    return registry.load_issue_session(stage.project.root, f"dev-{name}-1")


def list_told(stage: Stage, name: str, part: str = "") -> list[str]:
    """What the agent of that project's issue was told, as far as it has `part` in it."""
    mine = (f"dev-{name}-1", "message")
    entries = [one for one in peers_log(stage.folder) if (one["session"], one["kind"]) == mine]
    return [one["text"] for one in entries if part in one["text"]]


def fill(stage: Stage, name: str, percent: float) -> None:
    """Have the status line tell how full the context is, in a turn that ends with it."""
    stage.sm("send", f"{name}#1", f"gauge: {percent}\nThat is {percent}.", "--wait", str(HANG_S))


def is_over(stage: Stage, name: str) -> bool:
    directory = session(stage, name).dir
    files = (directory.hold, directory.handoff, directory.rotation)
    return not any(file.exists() for file in files)


def wait_told(stage: Stage, name: str, part: str) -> None:
    wait_for(lambda: list_told(stage, name, part), f"'{part}' in {name}", 60)


def wait_over(stage: Stage, name: str) -> None:
    wait_told(stage, name, RESUMED)
    wait_for(lambda: is_over(stage, name), f"the end of it in {name}", 60)


def test_contexts_of_several_projects_are_replaced_at_once_and_none_meets_another(
    stage: Stage,
) -> None:
    for name in PROJECTS:
        stage.sm("send", f"{name}#1", "gauge: 91")
    for name in ("harb", "mole"):
        wait_over(stage, name)
        worktree = session(stage, name).worktree
        (asked,), (resumed,) = list_told(stage, name, ASKED), list_told(stage, name, RESUMED)
        (entry,) = read_recent(stage.project.root, f"dev-{name}-1")
        document = Path(entry.details.handoff_file)
        assert (entry.project, entry.status) == (name, "confirmed")
        assert document.parent == worktree / ".sm" / "handoffs"
        assert document.is_file()
        assert str(document.parent) in asked
        assert f"{RESUMED} {document} and resume work" in resumed
        assert not git(worktree, "status", "--porcelain")
    assert not list_told(stage, "pier", ASKED)
    assert not (session(stage, "pier").worktree / ".sm").exists()
    assert len(list(read_recent(stage.project.root))) == 2


def test_a_cycle_begins_at_exactly_its_percentage_and_not_below(stage: Stage) -> None:
    for name, level in (("harb", 85), ("mole", 60)):
        fill(stage, name, level - 1)
        fill(stage, name, level - 0.1)
        fill(stage, name, level - 0.1)
        assert is_over(stage, name)
        assert not list_told(stage, name, ASKED)
        stage.sm("send", f"{name}#1", f"gauge: {level}")
        wait_told(stage, name, ASKED)
        assert list_told(stage, name, f"context at {level}%\n")
        wait_over(stage, name)
