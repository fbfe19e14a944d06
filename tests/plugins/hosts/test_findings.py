"""What is judged of a node by what it has said of a project."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import json, structs

from sm.plugins.hosts.findings import judge_project
from sm.plugins.hosts.node.facts import PROGRAM, NodeFacts, is_polled, name_forge, read_primary
from sm.plugins.hosts.rules import read_rules
from sm.sessions.project import Project
from sm.setup.finding import Level
from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.helpers import git


@pytest.fixture
def stage(tmp_path: Path, root: Root) -> Stage:
    assert root.path
    return make_stage(tmp_path, auto=False)


def list_failures(project: Project, facts: NodeFacts, before: str) -> list[str]:
    said = json.encode(facts).decode()
    found = judge_project(project, said, before)
    return [one.what for one in found if one.level is Level.FAIL]


def test_a_branch_that_moves_while_a_node_is_asked_is_no_other_repository(stage: Stage) -> None:
    project, clone = stage.project, stage.repository.clone
    before = read_primary(project)
    facts = NodeFacts(primary=before, forge=name_forge(project), rules=read_rules(project.settings))
    git(clone, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    git(clone, "push", "-q", "origin", "HEAD:main")
    assert list_failures(project, facts, before) == []
    assert (
        list_failures(project, structs.replace(facts, primary=read_primary(project)), before) == []
    )
    other = list_failures(project, structs.replace(facts, primary="f" * 40), before)
    assert other == ["'harb': the remote there has another 'main' than ours"]


def test_another_commit_of_the_same_version_is_told(stage: Stage) -> None:
    project, ours = stage.project, git(PROGRAM, "rev-parse", "HEAD")
    for commit, words in (
        (ours, ""),
        ("", ""),
        ("f" * 40, f"sm there is of commit {'f' * 12}, and {ours[:12]} here"),
    ):
        facts = NodeFacts(forge=name_forge(project), commit=commit)
        found = list(judge_project(project, json.encode(facts).decode(), ""))
        told = [one.what for one in found if one.level is Level.WARN]
        assert told == ([f"'harb': {words}"] if words else [])


def test_a_node_that_does_not_say_by_which_rules_it_merges_fails(stage: Stage) -> None:
    project = stage.project
    facts = NodeFacts(primary=read_primary(project), forge=name_forge(project))
    [found] = list_failures(project, facts, facts.primary)
    assert found == "'harb': its sm does not say by which rules it merges"


def test_a_dev_poll_on_the_node_is_found_by_its_ticks(stage: Stage) -> None:
    project = stage.project
    for ticks in range(2):
        assert not is_polled(project), f"{ticks} ticks by hand are no dev-poll"
        stage.poll()
    assert is_polled(project)
    facts = NodeFacts(
        primary=read_primary(project),
        forge=name_forge(project),
        rules=read_rules(project.settings),
        polls=True,
    )
    [found] = list_failures(project, facts, facts.primary)
    assert found == "'harb': a dev-poll runs there, and takes issues up for itself"
