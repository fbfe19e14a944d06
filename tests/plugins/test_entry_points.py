"""What is installed is asked for its plugins once, and again when something is installed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from sm.plugins import OURS, entry_points, find_plugins
from sm.plugins.entry_points import SETTLED_S, find_installed
from sm.store.files import write_atomic


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of Python's path in which something is installed; no other folder is there."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    return folder


def install(site: Path, name: str, lines: str) -> None:
    """Install a distribution, and let its folder have settled."""
    info = site / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[sm.plugins]\n{lines}\n")
    settle(site, 60)


def settle(site: Path, ago_s: float) -> None:
    at = time.time() - ago_s
    os.utime(site, (at, at))


def count_questions(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    asked: list[None] = []
    ask = entry_points._ask

    def counted() -> entry_points.Found:
        asked.append(None)
        return ask()

    monkeypatch.setattr(entry_points, "_ask", counted)
    return asked


def test_what_is_installed_is_asked_for_once_and_then_remembered(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "b-plugin", "b = b_plugin:PLUGIN")
    install(site, "a-plugin", "two = a_plugin:TWO\none = a_plugin:ONE")
    asked = count_questions(monkeypatch)
    expected = [("b", "b_plugin:PLUGIN"), ("one", "a_plugin:ONE"), ("two", "a_plugin:TWO")]
    assert find_installed() == expected
    assert find_installed() == expected
    assert len(asked) == 1


def test_one_that_is_installed_later_is_found(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(site, 90)
    asked = count_questions(monkeypatch)
    assert find_installed() == []
    assert find_installed() == []
    assert len(asked) == 1
    install(site, "late", "late = late:PLUGIN")
    assert find_installed() == [("late", "late:PLUGIN")]
    assert list(find_plugins()) == [*OURS.items(), ("late", "late:PLUGIN")]


def test_a_folder_that_changed_a_moment_ago_is_not_believed(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(site, SETTLED_S / 2)
    asked = count_questions(monkeypatch)
    find_installed()
    find_installed()
    assert len(asked) == 2


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"other\nx\ty\n", b"\n\n\n"])
def test_a_damaged_note_is_made_anew(
    site: Path, damage: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "one", "one = one:PLUGIN")
    find_installed()
    write_atomic(entry_points._place(), damage)
    asked = count_questions(monkeypatch)
    assert find_installed() == [("one", "one:PLUGIN")]
    assert find_installed() == [("one", "one:PLUGIN")]
    assert len(asked) == 1


def test_a_link_in_its_place_is_not_read(site: Path, tmp_path: Path) -> None:
    install(site, "one", "one = one:PLUGIN")
    find_installed()
    place = entry_points._place()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(place.read_text().replace("one:PLUGIN", "evil:PLUGIN"))
    place.unlink()
    place.symlink_to(elsewhere)
    assert find_installed() == [("one", "one:PLUGIN")]
