"""What a configuration said when it could last be used."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sm.base.errors import UsageError
from sm.config import cache, read
from sm.config.load import load, load_last_usable
from sm.config.read import read_document

BROKEN = (
    "projects: [\n",
    "name: harb\n",
    "name: harb\nrepo: /src/harb\nforge: {kind: local, path: /f}\nno_such_key: 1\n",
)
"""One that does not parse, one that lacks a key, and one that has a wrong one."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A configuration that can be used."""
    path = tmp_path / "sm.yaml"
    write(path, "name: harb\nrepo: /src/harb\nforge: {kind: local, path: /f}\nmax_sessions: 7\n")
    return path


def write(path: Path, text: str) -> None:
    """Write it, as if an hour ago; each time a second later than before."""
    last = path.stat().st_mtime if path.exists() else time.time() - 3600
    path.write_text(text)
    os.utime(path, (last + 1,) * 2)


def last_of(source: Path) -> int | None:
    """How many sessions it allowed when it could last be used; None if that is not known."""
    found = load_last_usable(source, os.environ, source.parent)
    return found.projects[0].max_sessions if found else None


@pytest.mark.parametrize("text", BROKEN)
def test_it_is_known_while_it_cannot_be_used(source: Path, text: str) -> None:
    load(source, os.environ, source.parent)
    write(source, text)
    with pytest.raises(UsageError):
        load(source, os.environ, source.parent)
    assert last_of(source) == 7


def test_it_is_known_when_the_file_is_gone(source: Path) -> None:
    load(source, os.environ, source.parent)
    source.unlink()
    assert last_of(source) == 7


def test_a_mended_one_takes_its_place(source: Path) -> None:
    load(source, os.environ, source.parent)
    write(source, BROKEN[0])
    write(source, "name: harb\nrepo: /src/harb\nforge: {kind: local, path: /f}\nmax_sessions: 3\n")
    load(source, os.environ, source.parent)
    assert last_of(source) == 3


def test_what_was_only_read_is_not_said_to_be_usable(source: Path) -> None:
    write(source, BROKEN[2])
    read_document(source, "sm.yaml")
    assert last_of(source) is None


def test_of_a_folder_each_file_is_known(source: Path) -> None:
    folder = source.parent / "all"
    folder.mkdir()
    for name in ("harb", "loft"):
        write(
            folder / f"{name}.yaml",
            f"name: {name}\nrepo: /src/{name}\nforge: {{kind: local, path: /f-{name}}}\n",
        )
    load(folder, os.environ, source.parent)
    write(folder / "loft.yaml", BROKEN[0])
    found = load_last_usable(folder, os.environ, source.parent)
    assert found
    assert [one.name for one in found.projects] == ["harb", "loft"]


def test_nothing_is_known_of_one_of_this_moment(source: Path) -> None:
    os.utime(source)
    load(source, os.environ, source.parent)
    assert last_of(source) is None


def test_it_is_written_once(source: Path) -> None:
    def written() -> int:
        load(source, os.environ, source.parent)
        return cache.locate(source, read.USABLE).stat().st_ino

    assert written() == written()
