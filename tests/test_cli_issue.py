from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers import git
from tests.hub import Hub, make_hub


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return make_hub(tmp_path)


def ok(hub: Hub, *args: str, stdin: str = "") -> str:
    done = hub.sm("issue", *args, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(hub: Hub, *args: str) -> str:
    done = hub.sm("issue", *args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_issue_is_filed_for_work_in_the_name_of_gits_user(hub: Hub) -> None:
    assert ok(hub, "add", "Fix: it", "-b", "Now.\nDepends on #7") == "#1\n"
    found = hub.open().issue(1)
    assert (found.title, found.labels, found.author) == ("Fix: it", ("backlog",), "Ada Tester")
    assert found.dependencies() == (7,)


def test_text_comes_from_a_file_or_standard_input(hub: Hub, tmp_path: Path) -> None:
    text = "## Comment by x\n$(rm -rf)\n" * 20_000
    (tmp_path / "text").write_text(text)
    ok(hub, "add", "a", "-F", str(tmp_path / "text"), "-l", "one", "-l", "two", "--as", "Bob")
    ok(hub, "add", "b", "-F", "-", stdin=text)
    first, second = hub.open().issues()[0]
    assert first.body == second.body == text
    assert (first.labels, first.author) == (("one", "two"), "Bob")


def test_author_is_the_user_where_git_has_none(hub: Hub, tmp_path: Path) -> None:
    git(hub.repository.clone, "config", "--global", "--unset", "user.name")
    ok(hub, "add", "a")
    assert hub.open().issue(1).author == "ada"


def test_list_shows_open_ones_and_takes_labels(hub: Hub) -> None:
    for title in ("one", "two", "three"):
        ok(hub, "add", title, "-l", title)
    ok(hub, "close", "2")
    assert [line.split()[:3] for line in ok(hub, "list").splitlines()[2:]] == [
        ["1", "one", "open"],
        ["3", "three", "open"],
    ]
    assert [item["number"] for item in json.loads(ok(hub, "list", "--json", "--state", "all"))] == [
        1,
        2,
        3,
    ]
    assert "three" not in ok(hub, "list", "--label", "one")


def test_list_names_broken_files_and_shows_the_others(hub: Hub) -> None:
    ok(hub, "add", "one")
    ok(hub, "add", "two")
    hub.edit("issues/0001.md", "state: open", "state: half")
    done = hub.sm("issue", "list")
    assert done.returncode == 1
    assert "two" in done.stdout
    assert "0001.md' line 4: state is 'half'" in done.stderr


def test_show_has_everything_and_no_terminal_codes(hub: Hub) -> None:
    ok(hub, "add", "a \x1b[31mred", "-b", "body \x1b]0;owned\x07end")
    ok(hub, "comment", "1", "-b", "First\x1b[2J", "--as", "Eve")
    shown = ok(hub, "show", "1")
    assert "\x1b" not in shown
    assert shown.startswith("#1 a red\nopen · Ada Tester, ")
    assert "\n\nbody end\n\n— Eve, " in shown
    assert shown.endswith("\n\nFirst\n")
    assert json.loads(ok(hub, "show", "1", "--json"))["body"] == "body \x1b]0;owned\x07end"


def test_labels_are_given_and_taken(hub: Hub) -> None:
    ok(hub, "add", "a")
    assert ok(hub, "label", "1", "-a", "blocked", "-r", "backlog", "-a", "ui") == "blocked, ui\n"


def test_bad_input_is_told_in_one_line(hub: Hub) -> None:
    assert "the title is empty" in refused(hub, "add", " ")
    assert "there is no issue 9" in refused(hub, "show", "9")
    assert "the text is given twice" in refused(hub, "add", "a", "-b", "b", "-F", "x")
    assert "cannot read 'gone': no such file" in refused(hub, "add", "a", "-F", "gone")
    assert "the comment is empty" in refused(hub, "comment", "1")
    assert "0" in refused(hub, "show", "0")
    assert "--as is empty" in refused(hub, "add", "a", "--as", "")


def test_every_change_wakes_the_monitors(hub: Hub) -> None:
    stamps = [hub.open().stamp_file.stat().st_mtime_ns]
    for line in ("add a", "comment 1 -b x", "label 1 -a y", "close 1"):
        ok(hub, *line.split())
        stamps.append(hub.open().stamp_file.stat().st_mtime_ns)
    assert sorted(set(stamps)) == stamps
