from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sm.cli.issue import keep_text
from sm.config.load import load
from sm.issues.look.tick_record import keep_outcome
from sm.sessions.project import Project
from tests.helpers import HANG_S, git
from tests.hub import Hub


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
    assert ok(hub, "add", "Fix: it", "-b", "Now.\nDepends on #7") == "harb#1\n"
    found = hub.open().issues.read(1)
    assert (found.title, found.labels, found.author) == ("Fix: it", ("backlog",), "Ada Tester")
    assert found.dependencies() == (7,)


def test_who_files_an_issue_is_told_that_nothing_takes_it_up(hub: Hub, tmp_path: Path) -> None:
    assert hub.sm("issue", "add", "a").stderr == (
        "dev-poll is not running, so nothing takes it up: start it with dev-poll --loop, or from "
        "cron\n"
    )
    assert hub.sm("issue", "add", "b", "-l", "later", "--new").stderr == ""
    assert hub.sm("pause").returncode == 0
    assert "all is paused since" in hub.sm("issue", "add", "c").stderr
    assert hub.sm("resume").returncode == 0
    list(
        keep_outcome(
            Project(load(hub.config, os.environ, tmp_path), hub.project).directory, iter(())
        )
    )
    assert hub.sm("issue", "add", "d").stderr == ""


def test_a_title_without_quotes_is_told_how_to_write_it(hub: Hub) -> None:
    said = refused(hub, "add", "Add", "a", "version")
    assert said == "sm: the title is to be in quotes: sm issue add 'Add a version'\n"


def test_text_comes_from_a_file_or_standard_input(hub: Hub, tmp_path: Path) -> None:
    text = "## Comment by x\n$(rm -rf)\n" * 20_000
    (tmp_path / "text").write_text(text)
    ok(hub, "add", "a", "-F", str(tmp_path / "text"), "-l", "one", "-l", "two", "--as", "Bob")
    ok(hub, "add", "b", "-F", "-", stdin=text)
    first, second = hub.open().issues.find()[0]
    assert first.body == second.body == text
    assert (first.labels, first.author) == (("one", "two"), "Bob")


def test_author_is_the_user_where_git_has_none(hub: Hub, tmp_path: Path) -> None:
    git(hub.repository.clone, "config", "--global", "--unset", "user.name")
    ok(hub, "add", "a")
    assert hub.open().issues.read(1).author == "ada"


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
    latin_1 = hub.folder.parent / "latin1.txt"
    latin_1.write_bytes("a café\n".encode("latin-1"))
    said = refused(hub, "add", "a", "-F", str(latin_1))
    assert f"'{latin_1}' is not UTF-8 (byte 5): convert it" in said
    assert hub.open().issues.find()[0] == []
    assert "the comment is empty" in refused(hub, "comment", "1")
    assert "0" in refused(hub, "show", "0")
    assert "--as is empty" in refused(hub, "add", "a", "--as", "")


def test_every_change_wakes_the_monitors(hub: Hub) -> None:
    stamps = [hub.open().signs()[0].stat().st_mtime_ns]
    for line in ("add a", "comment 1 -b x", "label 1 -a y", "close 1"):
        ok(hub, *line.split())
        stamps.append(hub.open().signs()[0].stat().st_mtime_ns)
    assert sorted(set(stamps)) == stamps


def test_an_issue_is_viewed_and_opened_again(hub: Hub) -> None:
    ok(hub, "add", "a")
    ok(hub, "close", "1")
    assert ok(hub, "reopen", "#1") == "reopened #1\n"
    assert ok(hub, "view", "1") == ok(hub, "show", "1")
    assert hub.open().issues.read(1).state == "open"
    ok(hub, "label", "1", "-r", "backlog")
    assert "sm issue label harb#1 --add backlog" in hub.sm("issue", "reopen", "1").stderr


def test_an_issue_is_edited_by_options(hub: Hub) -> None:
    ok(hub, "add", "Mend it", "-b", "Please.")
    ok(hub, "comment", "1", "-b", "Soon?")
    assert ok(hub, "edit", "1", "--title", "Mend all", "-b", "Now.\n## Comment by x\n") == (
        "changed #1\n"
    )
    ok(hub, "edit", "1", "--add-label", "urgent", "--remove-label", "backlog")
    found = hub.open().issues.read(1)
    assert (found.title, found.body, found.labels) == (
        "Mend all",
        "Now.\n## Comment by x\n",
        ("urgent",),
    )
    assert [comment.body for comment in found.comments] == ["Soon?"]
    assert "the title is empty" in refused(hub, "edit", "1", "--title", " ")
    assert "no terminal for an editor" in refused(hub, "edit", "1")
    assert "no terminal for an editor" in refused(hub, "add")


def in_terminal(hub: Hub, editor: str, *args: str) -> tuple[int, str]:
    """Run a command in a terminal, with a shell's line as the editor; exit code and output."""
    script = hub.folder.parent / "editor"
    script.write_text(f'#!/bin/sh\ncp "$1" {script}.shown\n{editor}\n')
    script.chmod(0o755)
    main, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-Im", "sm", "issue", *args],
        stdin=end,
        stdout=end,
        stderr=end,
        env=os.environ | {"EDITOR": str(script), "SM_CONFIG": str(hub.config), "TERM": "xterm"},
    )
    os.close(end)
    said = b""
    with contextlib.suppress(OSError):
        while data := os.read(main, 4096):
            said += data
    os.close(main)
    return process.wait(HANG_S), said.decode()


def shown_in_editor(hub: Hub) -> str:
    return (hub.folder.parent / "editor.shown").read_text()


def test_an_issue_is_written_in_the_editor(hub: Hub) -> None:
    write = """{ echo "Mend it"; echo; echo "# Why"; echo "It breaks."; } >"$1" """
    code, said = in_terminal(hub, write, "add")
    assert (code, said.splitlines()[0]) == (0, "harb#1")
    found = hub.open().issues.read(1)
    assert (found.title, found.body, found.labels) == (
        "Mend it",
        "# Why\nIt breaks.",
        ("backlog",),
    )
    code, _ = in_terminal(hub, """sed -i 's/breaks/is slow/' $1""", "edit", "1")
    assert code == 0
    assert shown_in_editor(hub).startswith("Mend it\n\n# Why\nIt breaks.\n\n<!-- sm: ")
    assert hub.open().issues.read(1).body == "# Why\nIt is slow."


def test_what_is_not_saved_or_is_empty_changes_nothing(hub: Hub) -> None:
    for editor, said in (
        ("true", "nothing was saved"),
        ("""echo >$1""", "the title is empty"),
        ("exit 3", "the editor failed"),
    ):
        code, told = in_terminal(hub, editor, "add")
        assert code == 2
        assert said in told
    assert hub.open().issues.find()[0] == []


def test_what_was_written_is_kept_where_it_cannot_be_used(hub: Hub) -> None:
    ok(hub, "add", "Mend it", "-b", "Please.")
    file = hub.folder / "issues" / "0001.md"
    meanwhile = f"""sed -i 's/Please/Never mind/' {file}; sed -i 's/Please/Thanks/' $1"""
    code, told = in_terminal(hub, meanwhile, "edit", "1")
    assert code == 2
    assert "the text of issue 1 has been changed meanwhile" in told
    kept = re.search(r"what you wrote is in '([^']+)'", " ".join(told.split()))
    assert kept
    assert "Thanks." in Path(kept[1]).read_text()
    assert hub.open().issues.read(1).body == "Never mind."


def test_what_was_written_is_kept_when_a_slow_forge_is_interrupted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for error in (KeyboardInterrupt(), OSError("the disk is gone")):
        with pytest.raises(type(error)), keep_text("Mend it\n\nPlease.\n"):
            raise error
        kept = re.search(r"what you wrote is in '([^']+)'", capsys.readouterr().err)
        assert kept
        assert Path(kept[1]).read_text() == "Mend it\n\nPlease.\n"


def test_a_label_that_is_nearly_another_one_is_refused(hub: Hub) -> None:
    ok(hub, "add", "one", "-l", "documentation")
    for words in (
        ("add", "two", "-l", "backlg"),
        ("label", "1", "--add", "backlg"),
        ("label", "1", "--remove", "backlg"),
        ("list", "-l", "backlg"),
        ("edit", "1", "--add-label", "backlg"),
    ):
        assert "there is no label 'backlg': did you mean 'backlog'?" in refused(hub, *words)
    assert "did you mean 'documentation'?" in refused(hub, "list", "-l", "documentatoin")
    assert hub.open().issues.read(1).labels == ("documentation",)
    ok(hub, "label", "1", "--add", "speed")
    ok(hub, "label", "1", "--add", "backlg", "--new")
    ok(hub, "label", "1", "--remove", "backlog")
    assert hub.open().issues.read(1).labels == ("documentation", "speed", "backlg")
