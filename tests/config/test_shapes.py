"""Sections and forges of plugins are part of the configuration, and cost nothing elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta

from sm.base import plugin
from sm.base.errors import UsageError
from sm.base.plugin import ForgeKind, Plugin, Registry, TrackerKind
from sm.config.duration import Seconds
from sm.config.forges import ForgeSettings, TrackerSettings
from sm.config.load import load, load_machine
from sm.config.schema import Config
from sm.config.section import Count, Section
from sm.config.shapes import OURS, choose_shapes, read_section
from sm.config.text import format_yaml, list_effective

CLONE = "name: harb\nrepo: clone\n"


class Bell(Section, frozen=True, rename={"pause_s": "pause"}):
    """The bell at the door."""

    rings: Annotated[Count, Meta(description="how often it rings")] = 2
    pause_s: Annotated[Seconds, Meta(description="how long it waits")] = Seconds(60)


class DoorSettings(ForgeSettings, frozen=True, kw_only=True, tag="door"):
    """Issues under the door."""

    mat: Annotated[Path, Meta(description="where they lie")]

    @property
    def place(self) -> str:
        """The mat."""
        return str(self.mat)


DOOR = Plugin(
    forges={
        "door": ForgeKind("no.such:thing", f"{__name__}:DoorSettings"),
        "broken": ForgeKind("json", "no.such:thing"),
    },
    sections={"bell": f"{__name__}:Bell", "labels": f"{__name__}:Bell", "odd": "json:dumps"},
)


@pytest.fixture(autouse=True)
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_registry", Registry(lambda: [("door", f"{__name__}:DOOR")]))


def read(folder: Path, text: str) -> Config:
    path = folder / "sm.yaml"
    path.write_text(text)
    return load(path, {}, folder)


def test_without_anything_of_a_plugin_none_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> list[tuple[str, str]]:
        raise AssertionError("a plugin was asked for")

    monkeypatch.setattr(plugin, "_registry", Registry(fail))
    config = read(tmp_path, f"{CLONE}forge: {{kind: local, path: forge}}\nci: {{command: make}}\n")
    assert type(config) is Config
    assert choose_shapes([{"projects": [{"forge": {"kind": "local"}}, {"name": "a"}]}]) is OURS


def test_a_forge_of_a_plugin_is_a_kind_as_the_others(tmp_path: Path) -> None:
    config = read(tmp_path, f"{CLONE}forge: {{kind: door, mat: mat}}\n")
    forges: list[ForgeSettings] = [project.forge for project in config.projects]
    assert forges == [DoorSettings(mat=tmp_path / "mat")]
    with pytest.raises(UsageError, match=r"missing key 'forge.mat' .*: where they lie"):
        read(tmp_path, f"{CLONE}forge: {{kind: door}}\n")
    with pytest.raises(UsageError, match=r"local or door, got 'window'"):
        read(tmp_path, f"{CLONE}forge: {{kind: window}}\n")


def test_a_section_holds_for_a_project_or_for_all_of_them(tmp_path: Path) -> None:
    forge = "forge: {kind: local, path: forge}"
    config = read(tmp_path, f"{CLONE}{forge}\nbell: {{rings: 3}}\n")
    assert read_section(config.projects[0], Bell) == Bell(rings=3)
    assert read_section(config, Bell) == Bell()
    config = read(
        tmp_path,
        "bell: {rings: 3, pause: 2m}\nprojects:\n"
        f"- {{name: a, repo: a, {forge}}}\n- {{name: b, repo: b, {forge}, bell: {{rings: 4}}}}\n",
    )
    assert read_section(config, Bell) == Bell(rings=3, pause_s=Seconds(120))
    assert [read_section(one, Bell).rings for one in config.projects] == [3, 4]
    assert {read_section(one, Bell).pause_s for one in config.projects} == {Seconds(120)}
    machine, _ = load_machine(tmp_path / "sm.yaml", {}, tmp_path)
    assert read_section(machine, Bell).rings == 3


def test_what_is_wrong_in_it_is_named_as_elsewhere(tmp_path: Path) -> None:
    project = f"{CLONE}forge: {{kind: local, path: forge}}\n"
    for wrong, said in (
        ("bell: {rings: no}", "wrong value for 'bell.rings' .*: expected a whole number"),
        ("bell: {pause: soon}", "wrong value for 'bell.pause'"),
        ("bell: {ring: 1}", "unknown key 'bell.ring' .*: did you mean 'rings'"),
        ("bel: {rings: 1}", "unknown key 'bel' .*: did you mean 'bell'"),
        ("labels: {rings: 1}", "unknown key 'labels.rings'"),
        ("odd: {}", "unknown key 'odd'"),
    ):
        with pytest.raises(UsageError, match=said):
            read(tmp_path, f"{project}{wrong}\n")


def test_it_is_shown_with_its_defaults_and_can_be_read_again(tmp_path: Path) -> None:
    forge = "forge: {kind: door, mat: mat}"
    config = read(tmp_path, f"projects:\n- {{name: a, repo: a, {forge}, bell: {{rings: 4}}}}\n")
    shown = list_effective(config)
    assert shown["bell"] == {"rings": 2, "pause": "1m"}
    assert shown["projects"][0]["bell"] == {"rings": 4, "pause": "1m"}
    assert shown["projects"][0]["forge"]["kind"] == "door"
    assert list_effective(read(tmp_path, format_yaml(shown))) == shown
    plain = read(tmp_path, f"{CLONE}forge: {{kind: local, path: forge}}\n")
    assert list_effective(plain)["bell"] == {"rings": 2, "pause": "1m"}
    assert list_effective(plain)["projects"][0]["bell"] == {"rings": 2, "pause": "1m"}


class ShelfSettings(TrackerSettings, frozen=True, kw_only=True, tag="shelf"):
    """Issues on a shelf."""

    board: Annotated[Path, Meta(description="the shelf")]


def test_a_tracker_stands_beside_any_forge_and_only_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = TrackerKind("no.module", f"{__name__}:ShelfSettings")
    added = Plugin(trackers={"shelf": kind})
    monkeypatch.setattr(plugin, "_registry", Registry(lambda: [("p", f"{__name__}:ADDED")]))
    monkeypatch.setitem(globals(), "ADDED", added)
    path = tmp_path / "sm.yaml"
    forge = "forge: {kind: local, path: forge}\n"
    path.write_text(f"{CLONE}{forge}tracker: {{kind: shelf, board: b}}\n")
    config = load(path, {}, tmp_path)
    assert config.projects[0].tracker == ShelfSettings(board=tmp_path / "b")
    shown = list_effective(config)
    assert shown["projects"][0]["tracker"] == {"kind": "shelf", "board": str(tmp_path / "b")}
    path.write_text(format_yaml(shown))
    assert load(path, {}, tmp_path).projects == config.projects
    for more, why in (("runner: slurm\n", "leave out 'runner'"), ("runners: {a: b}\n", "runners")):
        path.write_text(f"{CLONE}{forge}tracker: {{kind: shelf, board: b}}\n{more}")
        with pytest.raises(UsageError, match=why):
            load(path, {}, tmp_path)
    path.write_text(f"{CLONE}{forge}tracker: {{kind: desk}}\n")
    with pytest.raises(UsageError, match="expected shelf, got 'desk'"):
        load(path, {}, tmp_path)
    path.write_text(f"{CLONE}{forge}")
    config = load(path, {}, tmp_path)
    assert config.projects[0].tracker is None
    assert "tracker" not in list_effective(config)["projects"][0]
