"""What `sm doctor` says of channels: who is told by what, what waits, and what was given up."""

from __future__ import annotations

import importlib.util
import time
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import yaml

from sm.config.load import load
from sm.plugins.notify.checks import CHECK
from sm.plugins.notify.model import ChannelTrouble, Lost, Memory
from sm.plugins.notify.outbox import Destination, Outbox, Post
from sm.sessions.project import Project
from sm.setup.finding import Finding, Level
from sm.store.paths import Root
from tests.helpers import sm_yaml
from tests.plugins.notify.words import make_word


def examine(config: Path, root: Root) -> list[Finding]:
    loaded = load(config, {"SM_STATE_ROOT": str(root.path)}, config.parent)
    assert CHECK.machine
    assert CHECK.project
    project = Project(loaded, loaded.projects[0])
    return [*CHECK.machine(loaded), *CHECK.project(project)]


def set_up(folder: Path, **channels: object) -> Path:
    return sm_yaml(folder, notify={"channels": channels})


def open_outbox(config: Path, root: Root, project: str = "harb") -> Outbox:
    root.private.mkdir(mode=0o700, exist_ok=True)
    return Post(root).open(Destination(str(config), project, "phone"))


def test_without_channels_nothing_is_said(tmp_path: Path, root: Root) -> None:
    assert examine(sm_yaml(tmp_path), root) == []


def test_a_channel_is_named_with_its_service_and_without_its_address(
    tmp_path: Path, root: Root
) -> None:
    config = set_up(
        tmp_path,
        phone={"url": "ntfys://ntfy.example.com/secret"},
        desk={"url": "json://127.0.0.1:9/secret", "needs": ["review"]},
    )
    assert sorted(one.what for one in examine(config, root)) == [
        "channel 'desk' tells people of review by JSON",
        "channel 'phone' tells people by ntfy",
    ]


def test_a_channel_of_the_machine_is_named_once(tmp_path: Path, root: Root) -> None:
    config = set_up(tmp_path, phone={"url": "json://127.0.0.1:9"})
    project = yaml.safe_load(config.read_text())
    notify = project.pop("notify")
    config.write_text(yaml.safe_dump({"notify": notify, "projects": [project]}))
    assert len(examine(config, root)) == 1


@pytest.mark.parametrize(
    ("channel", "said"),
    [
        ({}, "it has no address: set notify.channels.phone.url"),
        ({"url": "nonsense://secret"}, "apprise knows no service of its address"),
        ({"url_env": "PHONE"}, "there is no address in the variable 'PHONE'"),
    ],
)
def test_a_channel_that_cannot_be_used_tells_nobody(
    tmp_path: Path, root: Root, channel: dict[str, str], said: str
) -> None:
    [found] = examine(set_up(tmp_path, phone=channel), root)
    assert found.level is Level.FAIL
    assert said in found.what
    assert "secret" not in found.what


def test_without_apprise_it_says_in_one_line_how_to_get_it(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec

    def find_other(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "apprise" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_other)
    [found] = examine(set_up(tmp_path, phone={"url": "json://127.0.0.1:9"}), root)
    assert found.level is Level.FAIL
    assert "pipx inject sm-orchestrator apprise" in found.advice


def test_a_service_that_fails_and_what_was_given_up_are_told(tmp_path: Path, root: Root) -> None:
    config = set_up(tmp_path, phone={"url": "json://127.0.0.1:9"})
    outbox, now = open_outbox(config, root), time.time()
    outbox.remember(
        Memory(trouble=ChannelTrouble(3, now - 60, "error=500", now), lost=Lost(2, now, "500"))
    )
    assert [one.level for one in examine(config, root)] == [Level.OK, Level.WARN]
    outbox.put(make_word())
    _, waiting, lost = examine(config, root)
    assert "has not taken a message since" in waiting.what
    assert "(error=500); 1 wait" in waiting.what
    assert "messages that were given up: 2" in lost.what
    outbox.remember(Memory(lost=Lost(2, now - 8 * 86400, "500")))
    assert len(examine(config, root)) == 1
