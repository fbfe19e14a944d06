"""An issue is named in the same ways by every verb: `shop 7`, `shop#7`, and `7` alone."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.store.paths import Root
from tests.residents import settle

BOTH = """
projects:
  - {name: harb, repo: a, forge: {kind: local, path: f}}
  - {name: reef, repo: b, forge: {kind: local, path: f}}
"""
ONE = "name: harb\nrepo: a\nforge: {kind: local, path: f}\n"


@pytest.fixture
def config(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Path:
    root.private.mkdir(mode=0o700)
    path = tmp_path / "sm.yaml"
    path.write_text(ONE)
    monkeypatch.setenv("SM_CONFIG", str(path))
    return path


def complaint(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert run(list(args)) in (1, 2)
    return capsys.readouterr().err


@pytest.mark.parametrize("called", [("harb", "7"), ("harb#7",), ("7",)])
@pytest.mark.parametrize(
    ("verb", "more", "said"),
    [
        ("reply", ["yes"], "no session 'dev-harb-7'"),
        ("kill", [], "'dev-harb-7'"),
        ("trace", [], "issue #7 of 'harb'"),
    ],
)
@pytest.mark.usefixtures("config")
def test_a_verb_about_an_issue_takes_each_way(
    verb: str,
    more: list[str],
    said: str,
    called: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = complaint(capsys, verb, *called, *more)
    assert said in told or "no session 'harb#7'" in told


@pytest.mark.parametrize("called", [("harb", "7"), ("harb#7",), ("7",)])
@pytest.mark.usefixtures("config")
def test_an_answer_without_a_text_is_told_what_is_missing(
    called: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    told = complaint(capsys, "reply", *called)
    assert told.startswith(f"sm: the text is missing: sm reply {' '.join(called)} TEXT;")


@pytest.mark.usefixtures("config")
def test_an_answer_to_nobody_is_told_what_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no project 'nowhere'" in complaint(capsys, "reply", "nowhere", "7")
    assert "expected a project and a number" in complaint(capsys, "reply", "harb")


@pytest.mark.parametrize("verb", ["recover", "start-session"])
@pytest.mark.parametrize("called", ["harb#7", "7"])
@pytest.mark.usefixtures("config")
def test_a_verb_that_begins_work_asks_the_forge_for_the_issue(
    verb: str, called: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = complaint(capsys, verb, called)
    assert "expected" not in told
    assert "f/" in told or "/f'" in told  # the forge, which is not there


OF_SESSIONS = ("tail", "queue", "wait", "cycle", "children", "context", "context enable", "health")


@pytest.mark.parametrize("verb", OF_SESSIONS)
@pytest.mark.parametrize("called", ["7", "harb 7", "harb#7"])
@pytest.mark.usefixtures("config")
def test_an_issue_is_a_session_too(
    verb: str, called: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no session 'harb#7'" in complaint(capsys, *verb.split(), *called.split())


@pytest.mark.usefixtures("config")
def test_a_message_goes_to_one_word_as_its_text_follows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "no session 'harb#7'" in complaint(capsys, "send", "7", "text")
    assert "no session 'harb'" in complaint(capsys, "send", "harb", "7", "text")


@pytest.mark.parametrize("verb", ["tail", "queue", "children", "logs"])
@pytest.mark.usefixtures("config")
def test_an_empty_word_is_no_session(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no session ''" in complaint(capsys, verb, "")


@pytest.mark.usefixtures("config")
def test_more_words_than_an_issue_has_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for args in ("tail harb x", "context harb 7 8", "issue show harb 7 8"):
        assert "such as 'harb 7'" in complaint(capsys, *args.split())


def test_with_several_projects_a_number_alone_names_none(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(BOTH)
    for args in (["trace", "7"], ["reply", "7", "x"], ["tail", "7"], ["kill", "7"]):
        told = complaint(capsys, *args)
        assert "'7' of which project? there is 'harb', 'reef': write 'harb#7'" in told


@pytest.mark.parametrize("place", ["b", "b/src", "linked", "b-worktrees/reef-7/src"])
def test_within_a_clone_or_a_worktree_its_project_is_meant(
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
) -> None:
    config.write_text(BOTH)
    (tmp_path / "linked").symlink_to(tmp_path / "b")
    (tmp_path / "b").mkdir()
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path / place)
    assert "issue #7 of 'reef'" in complaint(capsys, "trace", "7")
    assert "which project?" not in complaint(capsys, "issue", "show", "7")


def test_beside_the_clones_no_project_is_meant(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(BOTH)
    for place in ("b-worktrees/reef-x", "b-worktrees/harb-7", "bb"):
        (config.parent / place).mkdir(parents=True)
        monkeypatch.chdir(config.parent / place)
        assert "which project?" in complaint(capsys, "issue", "show", "7")


@pytest.mark.usefixtures("config")
def test_a_kill_within_another_program_leaves_its_signals_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    complaint(capsys, "kill", "harb", "7")
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


@pytest.mark.parametrize(
    ("words", "issue"),
    [
        ("harb 7 yes, please.", 7),
        ("harb#7 yes, please.", 7),
        ("7 yes, please.", 7),
        ("7 5 is better", 7),
        ("7 5", 7),
    ],
)
@pytest.mark.usefixtures("config")
def test_an_answer_may_be_several_words(
    words: str, issue: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"no session 'dev-harb-{issue}'" in complaint(capsys, "reply", *words.split())


def test_a_project_may_be_called_as_an_issue_is(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(ONE.replace("harb", '"7"'))
    assert "no session 'dev-7-5'" in complaint(capsys, "reply", "7", "5", "yes")
    assert "no session 'dev-7-7'" in complaint(capsys, "reply", "7", "5")


@pytest.mark.usefixtures("config")
def test_a_text_that_is_missing_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for args in (["reply", "harb#7"], ["reply", "harb", "7"], ["reply"]):
        assert "TEXT" in complaint(capsys, *args)


def test_the_forges_verbs_take_the_project_with_the_number(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(BOTH)
    assert "which project?" in complaint(capsys, "issue", "show", "7")
    assert "which project?" not in complaint(capsys, "issue", "show", "reef#7")
    assert "which project?" not in complaint(capsys, "issue", "show", "reef", "7")
    assert "no project 'rief'" in complaint(capsys, "pr", "show", "rief", "7")
    assert "no project 'rief'" in complaint(capsys, "pr", "show", "rief#7")
    told = complaint(capsys, "pr", "show", "harb#7", "--project", "reef")
    assert "--project names 'reef', the argument 'harb'" in told
    assert "'x' is no number" in complaint(capsys, "review", "x", "--approve")


def test_a_name_that_two_sessions_had_is_listed_once(
    root: Root, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for ident in ("s-000000aa", "s-000000ab"):
        ann = settle(root, tmp_path, ident)
        record = ann.dir.identity
        record.write_text(record.read_text().replace('"alias":""', '"alias":"ann"'))
        if ident.endswith("a"):
            ann.dir.over.write_text("has died\n")
    told = complaint(capsys, "tail", "xyzzy")
    assert told.count("ann") == 1
