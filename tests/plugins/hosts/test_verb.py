"""`sm host`: a machine is checked, added, listed and removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sm.store.paths import Root
from tests.plugins.hosts.world import World, living
from tests.sshd import MISSING, PROGRAM

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]


@pytest.fixture
def world(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[World]:
    """A node that the configuration, a folder of files, does not know yet."""
    with living(tmp_path, auto=False) as made:
        settings = yaml.safe_load(made.stage.config.read_text())
        del settings["hosts"]
        made.stage.config.unlink()
        folder = made.stage.folder / "config"
        folder.mkdir()
        (folder / "harb.yaml").write_text(yaml.safe_dump(settings))
        made.stage.config = folder
        yield made


def list_options(world: World) -> list[str]:
    host = world.box.host
    return ["--sm", host["sm"], *(word for one in host["options"] for word in ("-o", one))]


def test_a_host_is_checked_added_listed_and_removed(world: World) -> None:
    sm = world.stage.sm
    assert sm("host", "list").stderr == "there is no host: sm host add user@host\n"
    added = sm("host", "add", world.box.sshd.address, "--name", "box", *list_options(world))
    assert "ok    box: login by ssh in " in added.stdout
    assert "ok    box: 'harb': a clone there with the same remote" in added.stdout
    assert f"added 'box' to '{world.stage.config / 'hosts.yaml'}'" in added.stdout
    assert sm("host", "check").returncode == 0
    (row,) = json.loads(sm("host", "list", "--json").stdout)
    assert (row["name"], row["room"], row["sessions"], row["trouble"]) == ("box", 2, 0, "")
    assert "box" in sm("host", "list").stdout
    world.box.sshd.stop(cut=True)
    assert "box: cannot log in" in sm("host", "check", "box", check=False).stdout
    (line,) = sm("host", "list").stdout.splitlines()[1:]
    assert "0 of 2" in line
    assert "never" in line
    sm("host", "remove", "box")
    assert not (world.stage.config / "hosts.yaml").exists()
    assert "no host 'box'" in sm("host", "check", "box", check=False).stderr


def test_what_is_missing_on_a_host_is_named_with_what_to_do_and_it_is_not_added(
    world: World,
) -> None:
    box = world.box

    def add(*options: str, name: str = "box") -> tuple[int, str, str]:
        words = ("host", "add", box.sshd.address, "--name", name, *list_options(world), *options)
        done = world.stage.sm(*words, check=False)
        assert not (world.stage.config / "hosts.yaml").exists()
        return done.returncode, done.stdout, done.stderr

    code, said, _ = add("--sm", "/nowhere/sm")
    assert code == 1
    assert "fail  box: no sm there" in said
    assert "docs/HOSTS.md" in said

    (box.place / "sm.yaml").write_text("name: [")
    code, said, told = add()
    assert code == 1
    assert "fail  box: no project 'harb' there" in said
    assert "then: sm init --name harb" in said
    assert told == "sm: not added: mend that, then call it again\n"

    (box.sshd.folder / "authorized_keys").write_text("")
    _, said, _ = add(name="stranger")  # which has no connection yet
    assert "Permission denied" in said
    assert f"ssh-copy-id {box.sshd.address}" in said


def test_an_address_can_be_no_option(world: World) -> None:
    for address in ("-oProxyCommand=x", "a b", "", "$(x)"):
        done = world.stage.sm("host", "add", "--name", "box", "--", address, check=False)
        assert done.returncode == 2
        assert "no such host" in done.stderr
