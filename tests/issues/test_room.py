"""With too little room nothing new is taken up; it goes on by itself when there is more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sm.adapters.forge.local import forge
from sm.config.load import load
from sm.issues.look import room
from sm.issues.look.room import list_shortages
from sm.issues.poll import tick
from sm.plugins.doctor.checks import examine
from sm.sessions.project import Project
from sm.store.paths import Root
from sm.views.project import read_overview
from tests.disks import fill, small_disk
from tests.helpers import make_repository, sm_yaml


def make_project(folder: Path) -> Project:
    repository = make_repository(folder)
    forge.create(folder / "forge", repository.bare)
    config = load(sm_yaml(folder), os.environ, folder)
    project = Project(config, config.projects[0])
    project.forge.issues.add("Mend it", author="ada", labels=("backlog",))
    return project


@pytest.mark.usefixtures("tmux_socket")
def test_nothing_new_is_taken_up_while_a_disk_is_nearly_full(tmp_path: Path, root: Root) -> None:
    project = make_project(tmp_path)
    with small_disk(root.path, "4m"):
        ballast = fill(root.path, but_for=30)
        line = f"nothing new is taken up: the disk of '{root.path}' is nearly full"
        assert list(tick(project)) == [line]
        (short,) = list_shortages(project)
        assert short.since > 0
        assert f"of the disk of '{root.path}' are free" in short.text
        assert [one.what for one in examine(project.config, root, None) if "taken up" in one.what]
        (need,) = read_overview(project, 0.0).needs
        assert (need.text, need.since) == (f"{short.text}: nothing new is taken up", short.since)
        assert list(tick(project)) == [line]
        assert [one.since for one in list_shortages(project)] == [short.since]
        ballast.unlink()
        assert list_shortages(project) == []
        assert list(tick(project, dry_run=True)) == ["would pick up #1 Mend it"]


@pytest.mark.usefixtures("root", "tmux_socket")
def test_nothing_new_is_taken_up_while_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, memory = make_project(tmp_path), tmp_path / "meminfo"
    monkeypatch.setattr(room, "MEMORY", memory)
    assert list_shortages(project) == []  # a system that does not say it
    memory.write_text("MemTotal: 8000000 kB\nMemFree: 1 kB\nMemAvailable:  200000 kB\n")
    assert list(tick(project)) == ["nothing new is taken up: memory is nearly used up"]
    assert project.directory.shortage.exists()
    memory.write_text("MemTotal: 8000000 kB\nMemFree: 1 kB\nMemAvailable: 4000000 kB\n")
    project.forge.issues.remove_label(1, "backlog")
    assert list(tick(project)) == []
    assert not project.directory.shortage.exists()
