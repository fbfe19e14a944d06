from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec import Struct

from sm.store.damage import read_each
from sm.store.files import discard, ensure_private_dir, write_json


class Kept(Struct, frozen=True):
    words: str


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return ensure_private_dir(tmp_path / "kept")


def test_values_come_in_the_order_of_their_names(folder: Path) -> None:
    assert list(read_each(folder / "missing", Kept)) == []
    for name in ("2.json", "10.json", "1.json"):
        write_json(folder / name, Kept(name))
    names = ["1.json", "10.json", "2.json"]
    assert list(read_each(folder, Kept)) == [(name, Kept(name)) for name in names]


def test_what_is_no_value_is_left_out_and_only_what_is_damaged_is_removed(folder: Path) -> None:
    for name in ("1.json", "2.json"):
        write_json(folder / name, Kept(name))
    (folder / "1.json").write_text("{")
    others = [".1.json", "1.json.answer"]
    for name in others:
        (folder / name).write_text("{")
    os.mkfifo(folder / "3.json")
    assert [name for name, _ in read_each(folder, Kept)] == ["2.json"]
    assert sorted(one.name for one in folder.iterdir()) == sorted([*others, "2.json"])


def test_one_that_goes_meanwhile_is_left_out(folder: Path) -> None:
    for name in ("1.json", "2.json", "3.json"):
        write_json(folder / name, Kept(name))
    found = []
    for name, _ in read_each(folder, Kept):
        found.append(name)
        discard(folder / "2.json")
    assert found == ["1.json", "3.json"]
