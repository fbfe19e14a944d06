"""One machine that is configured under two names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sm.issues.placements import list_placements
from sm.plugins.hosts.folder import read_ident
from sm.plugins.hosts.settings import SshHost
from sm.plugins.hosts.ssh.client import SshNode
from sm.plugins.hosts.ssh.twins import find_twins, note_ident
from sm.store.paths import Root
from tests.plugins.hosts.world import World, living
from tests.sshd import MISSING, PROGRAM


def test_a_state_root_has_one_id_for_ever(tmp_path: Path) -> None:
    (one := tmp_path / "one").mkdir()
    (other := tmp_path / "other").mkdir()
    ident = read_ident(Root(one))
    assert len(ident) >= 16
    assert read_ident(Root(one)) == ident
    assert read_ident(Root(other)) != ident


def test_the_first_of_two_names_counts_and_an_unknown_machine_is_none(root: Root) -> None:
    nodes = [SshNode(root, name, SshHost(address=name)) for name in "abcde"]
    for node, ident in zip(nodes, ("one", "two", "one", "", ""), strict=True):
        note_ident(node.folder, ident)
    assert find_twins(nodes) == {"c": "a"}


@pytest.fixture
def world(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[World]:
    with living(tmp_path, auto=False) as made:
        said = yaml.safe_load(made.stage.config.read_text())
        [(name, host)] = said["hosts"]["ssh"].items()
        said["hosts"]["ssh"] = {name: host | {"sessions": 1}, "twin": host}
        made.stage.config.write_text(yaml.safe_dump(said))
        yield made


@pytest.mark.long_lived
@pytest.mark.skipif(PROGRAM is None, reason=MISSING)
def test_the_same_machine_under_two_names_counts_once(world: World) -> None:
    checked = world.stage.sm("host", "check", check=False)
    assert checked.returncode == 1
    assert "fail  twin: it is the machine of host 'box', with the same state root" in checked.stdout
    assert "box: it is the machine" not in checked.stdout
    for _ in range(3):
        world.stage.file_issue()
    world.stage.poll()
    world.stage.poll()
    placed = list_placements(world.project.directory)
    assert [one.host for one in placed] == ["box"]
    told = world.stage.sm("needs", check=False).stdout
    assert "Host 'twin' is the machine of 'box', and gets no sessions: remove one" in told
