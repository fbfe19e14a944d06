"""A configuration that has not changed is not parsed again, and one that has is."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

from sm.base.errors import UsageError
from sm.config import cache, read
from sm.config.load import NoConfigError, find
from sm.config.read import read_document

YAML = "projects:\n  - name: harb\n    repo: /src/harb\n"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were parsed."""
    texts, parse = list[str](), read._parse_yaml

    def note(text: str, shown: str) -> cache.Content:
        texts.append(text)
        return parse(text, shown)

    monkeypatch.setattr(read, "_parse_yaml", note)
    return texts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A configuration of an hour ago."""
    path = tmp_path / "sm.yaml"
    path.write_text(YAML)
    os.utime(path, (time.time() - 3600,) * 2)
    return path


@pytest.fixture(autouse=True)
def _later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can set the time at which a file's node was changed: let it be later instead."""
    monkeypatch.setattr(cache, "SETTLED_S", 0.0)


def test_a_file_is_parsed_once(path: Path, parsed: list[str]) -> None:
    first = read_document(path, "sm.yaml")
    assert read_document(path, "sm.yaml") == first
    assert first.data == {"projects": [{"name": "harb", "repo": "/src/harb"}]}
    assert first.place(("projects", 0, "repo")) == "'sm.yaml' (line 3)"
    assert len(parsed) == 1


@pytest.mark.parametrize("keeps_time", [False, True])
def test_a_change_is_seen_though_size_and_time_are_the_same(
    path: Path, parsed: list[str], *, keeps_time: bool
) -> None:
    read_document(path, "sm.yaml")
    before = path.stat()
    if keeps_time:
        while path.stat().st_ctime_ns == before.st_ctime_ns:  # the clock of files ticks slowly
            path.write_text(YAML.replace("harb", "hard"))
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    else:
        other = path.with_suffix(".new")
        other.write_text(YAML.replace("harb", "hard"))
        os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        other.replace(path)
    assert read_document(path, "sm.yaml").data["projects"][0]["name"] == "hard"
    assert len(parsed) == 2


def test_a_file_of_this_moment_is_not_kept(
    path: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second change within a tick of the clock would bear the same times."""
    monkeypatch.setattr(cache, "SETTLED_S", 60.0)
    read_document(path, "sm.yaml")
    read_document(path, "sm.yaml")
    assert len(parsed) == 2
    assert not cache.find_folder().exists()


@pytest.mark.parametrize(
    "text", ["day: 2026-11-22\n", "1: one\n", "x: .nan\n", "x: !!binary aGk=\n"]
)
def test_what_json_cannot_say_is_parsed_each_time(path: Path, parsed: list[str], text: str) -> None:
    path.write_text(text)
    first, second = (read_document(path, "sm.yaml").data for _ in range(2))
    assert repr(first) == repr(second)
    assert len(parsed) == 2


def test_what_does_not_parse_is_said_each_time(path: Path) -> None:
    path.write_text("projects: [")
    for _ in range(2):
        with pytest.raises(UsageError, match="cannot parse"):
            read_document(path, "sm.yaml")


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 1}'])
def test_a_damaged_entry_is_made_anew(path: Path, parsed: list[str], damage: str) -> None:
    read_document(path, "sm.yaml")
    (entry,) = cache.find_folder().iterdir()
    entry.write_text(damage)
    assert read_document(path, "sm.yaml").data
    assert len(parsed) == 2
    read_document(path, "sm.yaml")
    assert len(parsed) == 2


def test_entries_in_a_folder_that_others_may_write_to_are_not_made(path: Path) -> None:
    cache.find_folder().mkdir(parents=True, mode=0o777)
    cache.find_folder().chmod(0o777)
    read_document(path, "sm.yaml")
    assert not list(cache.find_folder().iterdir())


def test_an_entry_behind_a_link_is_not_believed(path: Path, parsed: list[str]) -> None:
    read_document(path, "sm.yaml")
    (entry,) = cache.find_folder().iterdir()
    elsewhere = entry.rename(path.parent / "elsewhere.json")
    entry.symlink_to(elsewhere)
    read_document(path, "sm.yaml")
    assert len(parsed) == 2


def test_without_a_home_that_can_be_written_all_works(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/proc/nothing")
    assert read_document(path, "sm.yaml").data


def test_a_configuration_that_is_known_loads_no_parser(path: Path) -> None:
    read_document(path, "sm.yaml")
    code = (
        "import sys, pathlib\nfrom sm.config.read import read_document\n"
        "read_document(pathlib.Path(sys.argv[1]), 'x')\nprint('yaml' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-Ic", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_a_user_without_a_home_has_no_cache_and_no_configuration_of_his_own(
    path: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def forget(uid: int) -> NoReturn:
        raise KeyError(uid)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", forget)
    for _ in range(2):
        assert read_document(path, "sm.yaml").data["projects"]
    assert len(parsed) == 2
    with pytest.raises(NoConfigError, match="no configuration: HOME is not set"):
        find(None, os.environ, tmp_path / "elsewhere")
