"""`bin/soak forges` without a server: what is made of a run, and what becomes a recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers import recorder
from tests.servers.programs import VARIABLES
from tests.servers.recorder import Exchange
from tests.soak.forges import Outcome, format_table, keep, main, sum_up

REPORT = """<testsuites><testsuite>
<testcase classname="tests.servers.test_servers.TestGitea" name="test_one[a]"/>
<testcase classname="tests.servers.test_servers.TestGitea" name="test_two">
<failure message="assert 1\n  == 2"/></testcase>
<testcase classname="tests.servers.test_servers.TestGitea" name="test_four"><skipped/></testcase>
</testsuite></testsuites>"""


def test_what_differs_is_told_by_server() -> None:
    outcome = sum_up(REPORT, "gitea-1.26.0")
    assert outcome == Outcome("gitea-1.26.0", 1, (("test_two", "assert 1 == 2"),), 1)
    assert format_table([outcome]).splitlines()[2:] == [
        "| gitea-1.26.0 | 1 of 2 | 1 | `test_two`: assert 1 == 2 |"
    ]


def test_a_recording_is_made_of_what_was_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "FOLDER", tmp_path / "kept")
    noted = tmp_path / "noted"
    one = Exchange("one", "GET", "/user", {}, None, 200, {}, {"login": "ada"})
    for name in ("a", "b"):
        (noted / "gitea-1.26.0").mkdir(parents=True, exist_ok=True)
        recorder.write(noted / "gitea-1.26.0" / f"{name}.jsonl", [one])
    assert [file.name for file in keep(noted)] == ["gitea-1.26.0.jsonl"]
    assert recorder.read(recorder.find_recording("gitea")) == [one]


def test_without_a_server_it_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.soak.forges.PROGRAMS", dict.fromkeys(VARIABLES, ""))
    assert main([]) == 2
    assert "SM_TEST_GITEA" in capsys.readouterr().err


def test_an_unknown_server_is_told() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["subversion"])
