"""Which addresses get a heartbeat, and of which projects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sm.base import plugin
from sm.config.load import load
from sm.issues.look.tick_record import Clock, Polled
from sm.issues.ticks import Tick
from sm.plugins import OURS
from sm.plugins.notify.listener import is_wanted, list_addresses

CONFIG = """\
notify: {{heartbeat_url: "https://hc.example.com/all"}}
projects:
- {{name: shop, repo: clone, forge: {{kind: local, path: forge}}}}
- {{name: blog, repo: clone, forge: {{kind: local, path: forge}}}}
- name: wiki
  repo: clone
  forge: {{kind: local, path: forge}}
  notify: {{heartbeat_url: "{own}"}}
"""
WELL, ILL = Polled(Clock(1.0)), Polled(Clock(1.0), error="no route")


@pytest.fixture(autouse=True)
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_registry", plugin.Registry(OURS.items))


def make_tick(folder: Path, own: str, errors: dict[str, str], **projects: Polled) -> Tick:
    config = folder / "sm.yaml"
    config.write_text(CONFIG.format(own=own))
    return Tick(load(config, os.environ, folder), projects, errors)


def test_each_address_hears_of_the_projects_that_have_it(tmp_path: Path) -> None:
    tick = make_tick(tmp_path, "https://hc.example.com/wiki", {"blog": "gone"}, shop=WELL, wiki=ILL)
    assert list_addresses(tick) == {
        "https://hc.example.com/all": ("shop", "blog"),
        "https://hc.example.com/wiki": ("wiki",),
    }
    assert tick.narrow(("wiki",)).troubles == ("wiki: no route",)
    assert tick.narrow(("shop", "blog")).troubles == ("blog: gone",)
    assert not tick.narrow(("shop",)).failed


def test_a_project_that_has_not_ticked_is_not_told_of(tmp_path: Path) -> None:
    tick = make_tick(tmp_path, "", {}, wiki=WELL)
    assert not is_wanted(tick), "its own section has no address"
    assert is_wanted(make_tick(tmp_path, "", {}, shop=WELL))
