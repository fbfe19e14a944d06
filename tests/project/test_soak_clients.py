"""`bin/soak clients` without the hours: versions, what is made of a run, whose folder it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real import npm
from tests.soak.clients import Outcome, format_table, main, pair, sum_up

REPORT = """<testsuites><testsuite>
<testcase classname="tests.real.test_client" name="test_one[a]"/>
<testcase classname="tests.real.test_client" name="test_two">
<failure message="assert 1\n  == 2"/></testcase>
<testcase classname="tests.real.test_codex" name="test_three"/>
<testcase classname="tests.real.test_texts" name="test_four"><skipped message="no npm"/></testcase>
</testsuite></testsuites>"""


def test_the_newest_go_with_the_newest() -> None:
    assert pair(["1", "2", "3"], ["8", "9"], 3) == [("3", "9"), ("2", "8"), ("1", "8")]


def test_what_differs_is_told_by_client() -> None:
    claude, codex = sum_up(REPORT, "2.1.1", "0.1.0")
    assert claude == Outcome(
        "Claude Code", "2.1.1", 1, (("test_client::test_two", "assert 1 == 2"),)
    )
    assert codex == Outcome("Codex", "0.1.0", 1)
    assert format_table([claude, codex]).splitlines()[2:] == [
        "| Claude Code | 2.1.1 | 1 of 2 | `test_client::test_two`: assert 1 == 2 |",
        "| Codex | 0.1.0 | 1 of 1 | nothing |",
    ]


@pytest.mark.parametrize("argv", [["none"], ["0"], ["1", "2"]])
def test_unusable_arguments_are_told(argv: list[str]) -> None:
    assert main(argv) == 2


def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> npm.Packages:
    monkeypatch.setenv("SM_TEST_CLIENTS", str(tmp_path / "own"))
    folder = npm.folder("SM_TEST_CLIENTS", "clients")
    return npm.Packages("it", folder, ("a@1.0.0",), (Path("program"),))


def test_a_folder_of_a_persons_with_other_versions_is_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = given(tmp_path, monkeypatch)
    packages.folder.mkdir()
    (packages.folder / "program").touch()
    assert packages.installed()
    assert [path.name for path in packages.folder.iterdir()] == ["program"]


def test_a_folder_of_a_persons_with_something_else_is_refused_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = given(tmp_path, monkeypatch)
    packages.folder.mkdir()
    (packages.folder / "diary").touch()
    with pytest.raises(npm.InstallError, match="is left alone"):
        packages.installed()
    assert [path.name for path in packages.folder.iterdir()] == ["diary"]
