"""What plugins add is found by name, and what is wrong with one keeps no other from its place."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from sm.base import plugin
from sm.base.errors import UsageError
from sm.base.plugin import KINDS, Plugin, PluginFailure, Registry, Verb
from sm.plugins import OURS

FIRST = Plugin(
    agents={"here": "json:dumps", "gone": "json:nothing"}, verbs={"try": Verb("json:loads", "Try.")}
)
SECOND = Plugin(agents={"here": "json:loads", "there": "no.such.module"})
NONE = "not a plugin"
PLACES = {
    "first": f"{__name__}:FIRST",
    "broken": "no.such.plugin:PLUGIN",
    "wrong": f"{__name__}:NONE",
    "second": f"{__name__}:SECOND",
}


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """Have these plugins, and no others."""
    monkeypatch.setattr(plugin, "_registry", Registry(PLACES.items))
    return PLACES


@pytest.mark.usefixtures("places")
def test_parts_are_found_by_kind_and_name_and_loaded_when_they_are_used() -> None:
    assert list(plugin.list_parts("agents")) == ["here", "gone", "there"]
    import json

    assert plugin.load_part("agents", "here") is json.dumps
    assert plugin.load_part("verbs", "try") is json.loads
    assert plugin.list_parts("channels") == {}


@pytest.mark.usefixtures("places")
def test_a_plugin_that_cannot_be_used_is_told_of_with_its_reason() -> None:
    assert plugin.list_failures() == [
        PluginFailure("broken", "ModuleNotFoundError: No module named 'no'"),
        PluginFailure("wrong", f"'{__name__}:NONE' is a str, no sm.base.plugin.Plugin"),
        PluginFailure("second", "agents: 'here' is of plugin 'first'"),
    ]


@pytest.mark.usefixtures("places")
def test_a_part_that_is_missing_is_an_error_that_names_its_plugin() -> None:
    with pytest.raises(UsageError, match="plugin 'first' cannot give 'gone': AttributeError"):
        plugin.load_part("agents", "gone")
    with pytest.raises(UsageError, match="plugin 'second' cannot give 'there': ModuleNotFound"):
        plugin.load_part("agents", "there")
    with pytest.raises(UsageError, match="no plugin has 'nowhere' among its agents"):
        plugin.load_part("agents", "nowhere")


@pytest.mark.usefixtures("places")
def test_a_part_with_a_name_of_the_core_is_told_of() -> None:
    assert plugin.list_clashes("agents", {"there", "local"}) == [
        PluginFailure("second", "agents: 'there' is a name of sm's own")
    ]


def test_a_plugin_that_raises_anything_stops_no_other(tmp_path: Path) -> None:
    (tmp_path / "raising_plugin.py").write_text("raise RuntimeError('no\\nway')\n")
    sys.path.insert(0, str(tmp_path))
    try:
        found = Registry(lambda: [("odd", "raising_plugin:PLUGIN"), *PLACES.items()][:2])
        assert list(found.list_parts("verbs")) == ["try"]
        assert found.list_failures() == [PluginFailure("odd", "RuntimeError: no way")]
    finally:
        sys.path.remove(str(tmp_path))


def test_of_two_plugins_with_one_name_the_first_is_used() -> None:
    found = Registry(lambda: [("one", PLACES["first"]), ("one", PLACES["second"])])
    assert list(found.list_parts("agents")) == ["here", "gone"]
    why = f"'{PLACES['second']}' is left out: plugin 'one' is '{PLACES['first']}'"
    assert found.list_failures() == [PluginFailure("one", why)]


def test_each_plugin_of_ours_loads_with_all_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_registry", Registry(OURS.items))
    assert plugin.list_failures() == []
    assert {part.plugin for kind in KINDS for part in plugin.list_parts(kind).values()} == {*OURS}
    for kind in KINDS:
        assert all(part for _, part in plugin.load_parts(kind))
