"""A node that answers, and cannot begin a session: its words, a need, and no more attempts."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from sm.issues.placements import list_placements
from sm.plugins.hosts import health, hindrances
from sm.plugins.hosts.dispatch import rules, tick
from sm.plugins.hosts.folder import open_folder
from sm.plugins.hosts.health import TRY_S, HostRefusal
from sm.plugins.hosts.ssh.runner import RUNNER
from sm.store.paths import Root
from tests.helpers import git, wait_for
from tests.plugins.hosts.world import World, living
from tests.sshd import MISSING, PROGRAM

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]

MakeWorld = Callable[..., World]


@pytest.fixture
def world_of(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[MakeWorld]:
    with contextlib.ExitStack() as stack:
        yield lambda **how: stack.enter_context(living(tmp_path, **how))


def test_a_node_that_cannot_begin_a_session_says_why_and_gets_no_attempt_after_another(
    world_of: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of(auto=False)
    stage, sm = world.stage, world.stage.sm
    head = world.box.place / "clone" / ".git" / "HEAD"
    head.rename(head.with_name("HEAD-aside"))
    monkeypatch.setattr(rules, "PLACE_FOR_S", 0.0)
    monkeypatch.setattr(hindrances, "REFUSED_S", 0.0)
    issue = stage.file_issue()
    told = stage.poll(check=False)
    assert "not a git repository" in told.stdout + told.stderr
    for _ in range(3):
        stage.poll(check=False)
    assert [one.attempt for one in list_placements(world.project.directory)] == [1]
    assert git(stage.repository.bare, "rev-list", "--count", f"main..fix/{issue}") == "0"
    (row,) = json.loads(sm("status", "--json").stdout)[0]["sessions"]
    assert row["waits_for"].startswith("host 'box' to begin it, which says: ")
    assert "not a git repository" in row["waits_for"]
    need = stage.find_need("host")
    assert need["text"].startswith("Host 'box' answers, and cannot begin a session of 'harb': ")
    assert need["command"] == "sm host check box"
    assert "not a git repository" in sm("host", "list").stdout
    assert RUNNER.list_free(world.project, []) == []

    head.with_name("HEAD-aside").rename(head)
    monkeypatch.setattr(tick, "AGAIN_S", 0.0)
    assert f"placed #{issue} on box, attempt 1" in stage.poll().stdout
    wait_for(stage.told, "the first prompt")
    assert "cannot begin" not in sm("needs", check=False).stdout
    assert RUNNER.list_free(world.project, []) == ["box"]


def test_a_host_that_was_found_to_be_well_gets_work_again(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    folder = open_folder(world.project.root, "box")
    health.note_refusal(folder, "harb", "host 'box': no way to the forge", 1.0)
    assert RUNNER.list_free(world.project, []) == ["box"], "one, to find out"
    health.note_refusal(folder, "harb", "host 'box': no way to the forge", 2.0 * TRY_S)
    checked = world.stage.sm("host", "check", "box", check=False)
    assert (health.read_refusal(folder, "harb") is None) == (checked.returncode == 0)
    assert checked.returncode == 0, checked.stdout
    assert RUNNER.list_free(world.project, []) == ["box", "box"]


def test_an_issue_that_a_node_does_not_take_leaves_the_host_to_others(
    world_of: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of(auto=False, trusted=["ada", "nobody"])
    monkeypatch.setattr(hindrances, "REFUSED_S", 0.0)
    said = world.box.config.read_text()
    world.box.config.write_text(said.replace("- ada\n", ""))
    world.stage.file_issue()
    told = world.stage.poll(check=False)
    assert "cannot place #1 on box" in told.stdout + told.stderr
    assert RUNNER.list_free(world.project, []) == ["box"]
    need = world.stage.find_need("host")
    assert need["text"].startswith("Host 'box' does not begin harb#1: ")


def test_a_node_with_weaker_rules_begins_nothing_and_the_check_says_so(
    world_of: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of(auto=True, trusted=["ada", "rita"])
    monkeypatch.setattr(hindrances, "REFUSED_S", 0.0)
    said = yaml.safe_load(world.box.config.read_text())
    weaker = said | {"review": {"required": False}, "trusted": []}
    world.box.config.write_text(yaml.safe_dump(weaker))
    checked = world.stage.sm("host", "check", "box", check=False)
    assert checked.returncode == 1
    assert "weaker rules than here: 'review.required' is false there" in checked.stdout
    assert "weaker rules than here: 'trusted' is empty there" in checked.stdout
    world.stage.file_issue()
    world.stage.poll(check=False)
    assert "by weaker rules" in world.stage.find_need("host")["text"]
    assert not world.box.has_sessions()
    assert world.stage.told() == []
    world.box.config.write_text(yaml.safe_dump(said))
    assert world.stage.sm("host", "check", "box").returncode == 0


def test_a_node_whose_rules_become_weaker_gets_nothing_more(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    world.stage.file_issue()
    world.stage.poll()
    wait_for(world.stage.told, "the first prompt")
    [placement] = list_placements(world.project.directory)
    said = yaml.safe_load(world.box.config.read_text())
    world.box.config.write_text(yaml.safe_dump(said | {"review": {"required": False}}))
    RUNNER.follow(world.project, [placement])
    assert RUNNER.list_free(world.project, [placement]) == []
    needed = world.stage.find_need("host")["text"]
    assert needed.startswith("Host 'box' gets nothing new: it merges by weaker rules than here: ")


def test_a_host_that_refuses_is_tried_again_ever_less_often() -> None:
    new = HostRefusal(1000.0, 1000.0, "no")
    assert not new.is_to_be_tried(1000.0 + TRY_S - 1)
    assert new.is_to_be_tried(1000.0 + TRY_S)
    old = HostRefusal(1000.0, 1000.0 + 3 * TRY_S, "no")
    assert not old.is_to_be_tried(old.last_at + 3 * TRY_S - 1)
    assert old.is_to_be_tried(old.last_at + 3 * TRY_S)
    assert new.is_to_be_tried(0.0), "the clock was set back"
