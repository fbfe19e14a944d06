"""What `sm poll` tells dev-poll."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sm.store.paths import Root
from tests.forked import run_sm
from tests.hub import make_hub


@pytest.mark.parametrize(
    ("interval", "expected"), [("12d", "1036800"), ("1m", "60"), ("2.5", "2.5"), ("0.00001", "0")]
)
def test_the_interval_is_a_plain_number(
    tmp_path: Path, root: Root, interval: str, expected: str
) -> None:
    assert root.path.is_dir()
    hub = make_hub(tmp_path)
    with hub.config.open("a") as file:
        file.write(f"poll_interval: {interval}\n")
    said = hub.sm("poll", "--dry-run")
    assert (said.stdout.splitlines()[-1:], said.stderr) == ([expected], "")


def test_a_loop_tells_once_of_a_configuration_that_does_not_count(
    tmp_path: Path, root: Root, sealed: Path
) -> None:
    assert root.path.is_dir()
    hub = make_hub(tmp_path)
    own = sealed / ".config" / "sm"
    own.mkdir(parents=True)
    hub.config.rename(own / "harb.yaml")
    (tmp_path / ".git").mkdir()
    hub.config.write_text("name: theirs\n")
    env = {name: value for name, value in os.environ.items() if name != "SM_CONFIG"}
    for loop in ((), ("--loop",)):
        said = run_sm("poll", "--dry-run", *loop, env=env, cwd=hub.config.parent)
        told = [said.stderr, said.stdout]
        assert [text.count("'sm.yaml' is not used") for text in told] == [not loop, bool(loop)]


def test_a_forge_that_is_missing_is_watched_for_its_return(tmp_path: Path, root: Root) -> None:
    assert root.path.is_dir()
    hub = make_hub(tmp_path)
    hub.folder.rename(tmp_path / "gone")
    said = hub.sm("poll", "--loop")
    assert "there is no forge in" in said.stderr
    watched = [line.removeprefix("watch ") for line in said.stdout.splitlines()]
    assert {str(hub.folder), str(hub.folder.parent)} <= set(watched)
