"""A configuration in a work tree: git may have written it, so it counts only if it was allowed."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.base.errors import UsageError
from sm.config import allowed
from sm.config.load import find, find_left_out, load, load_machine
from tests.helpers import git

ONE = "name: harb\nrepo: harb\nforge: {kind: local, path: forge}\n"
ONE_TOML = "name = 'harb'\nrepo = 'harb'\nforge = {kind = 'local', path = 'forge'}\n"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "clone"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("SM_CONFIG", raising=False)
    return folder


def names(cwd: Path, explicit: Path | None = None) -> list[str]:
    env = {"HOME": os.environ["HOME"]}
    return [project.name for project in load(explicit, env, cwd).projects]


def test_a_file_in_a_commit_runs_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clone, ran = tmp_path / "clone", tmp_path / "ran"
    git(tmp_path, "init", "-q", "-b", "main", "clone")
    git(clone, "commit", "-q", "--allow-empty", "-m", "first")
    git(clone, "checkout", "-q", "-b", "theirs")
    (clone / "sm.yaml").write_text(
        "name: harb\nrepo: .\nforge:\n  kind: github\n  repository: harbor/harb\n"
        f"  url: http://127.0.0.1:9\n  token_command: touch {shlex.quote(str(ran))}\n"
    )
    git(clone, "add", "sm.yaml")
    git(clone, "commit", "-q", "-m", "theirs")
    git(clone, "checkout", "-q", "main")
    git(clone, "checkout", "-q", "theirs")
    monkeypatch.chdir(clone)
    monkeypatch.delenv("SM_CONFIG", raising=False)
    assert run(["issue", "list"]) == 2
    assert not ran.exists()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "'sm.yaml' is not used, as it lies in a work tree" in said
    assert "sm config allow sm.yaml" in said
    assert run(["config", "allow"]) == 0
    assert run(["issue", "list"]) != 2
    assert ran.exists(), "the way that a person takes is open"


@pytest.mark.parametrize("name", ["sm.yaml", "sm.yml", "sm.toml"])
@pytest.mark.parametrize("mark", [*allowed.MARKS, "file", "above", "link"])
def test_it_is_left_out_wherever_git_may_have_written_it(
    tmp_path: Path, name: str, mark: str
) -> None:
    top, cwd = tmp_path / "top", tmp_path / "top"
    top.mkdir()
    if mark == "file":  # of a worktree, or a submodule
        (top / ".git").write_text("gitdir: elsewhere\n")
    else:
        (top / (mark if mark in allowed.MARKS else ".git")).mkdir()
    if mark == "above":
        cwd = top / "deep" / "within"
        cwd.mkdir(parents=True)
    text = ONE_TOML if name.endswith("toml") else ONE
    (cwd / name).write_text(text)
    if mark == "link":  # from a folder that is no work tree
        cwd = tmp_path / "own"
        cwd.mkdir()
        (cwd / name).symlink_to(top / name)
    with pytest.raises(UsageError, match="is not used, as it lies in a work tree"):
        names(cwd)
    allowed.allow(cwd / name, text.encode())
    assert names(cwd) == ["harb"]


def test_the_users_own_counts_beside_it_and_the_file_is_told_of(
    clone: Path, sealed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = sealed / ".config" / "sm"
    own.mkdir(parents=True)
    (own / "reef.yaml").write_text(ONE.replace("harb", "reef"))
    (clone / "sm.yaml").write_text(ONE + "state_root: /elsewhere\n")
    assert names(clone) == ["reef"]
    assert load_machine(None, os.environ, clone)[0].state_root != Path("/elsewhere")
    assert run(["config", "show"]) == 0
    assert "'sm.yaml' is not used" in capsys.readouterr().err
    assert run(["children"]) == 0
    assert capsys.readouterr().err.count("'sm.yaml' is not used") == 1


def test_one_that_cannot_be_read_keeps_no_command_from_working(clone: Path, sealed: Path) -> None:
    own = sealed / ".config" / "sm"
    own.mkdir(parents=True)
    (own / "reef.yaml").write_text(ONE.replace("harb", "reef"))
    for name in ("sm.yaml", "sm.toml"):
        os.mkfifo(clone / name)
    (clone / "sm.yml").write_bytes(b"#" * 2_000_000)
    assert names(clone) == ["reef"]


def test_a_named_one_counts_and_no_other_is_told_of(clone: Path) -> None:
    path = clone / "sm.yaml"
    path.write_text(ONE)
    assert names(clone, path) == ["harb"]
    assert names(clone, Path("sm.yaml")) == ["harb"]
    env = {"HOME": os.environ["HOME"], "SM_CONFIG": "sm.yaml"}
    assert find(None, env, clone) == path
    assert find_left_out(None, env, clone) is None
    assert find_left_out(path, {}, clone) is None


def test_a_change_has_to_be_allowed_again_also_where_a_session_names_the_file(clone: Path) -> None:
    path = clone / "sm.yaml"
    path.write_text(ONE)
    allowed.allow(path, ONE.encode())
    assert names(clone) == ["harb"]
    path.write_text(ONE.replace("harb", "theirs"))
    with pytest.raises(UsageError, match="has changed since you allowed it"):
        names(clone)
    elsewhere = clone.parent
    with pytest.raises(
        UsageError, match=f"sm config allow {path}".replace(str(elsewhere) + "/", "")
    ):
        names(elsewhere, path)  # as its monitor does
    link = elsewhere / "link"
    link.symlink_to(clone)
    with pytest.raises(UsageError, match="has changed"):
        names(elsewhere, link / "sm.yaml")
    path.write_text(ONE)
    assert names(clone) == ["harb"], "what was allowed stays so, on whichever branch"


def test_a_link_that_leads_elsewhere_now_is_not_what_was_allowed(
    tmp_path: Path, clone: Path
) -> None:
    (clone / "sm.yaml").write_text(ONE)
    (link := tmp_path / "link").symlink_to(clone)
    allowed.allow(link / "sm.yaml", ONE.encode())
    assert names(tmp_path, link / "sm.yaml") == ["harb"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "sm.yaml").write_text(ONE.replace("harb", "theirs"))
    link.unlink()
    link.symlink_to(other)
    with pytest.raises(UsageError, match="has changed since you allowed it"):
        names(tmp_path, link / "sm.yaml")
    assert names(tmp_path, other / "sm.yaml") == ["theirs"], "it was named itself"


@pytest.mark.parametrize("named", [{"GIT_DIR": "/repo"}, {"GIT_WORK_TREE": "."}])
def test_a_work_tree_that_only_gits_variables_name_is_one(
    tmp_path: Path, named: dict[str, str]
) -> None:
    (tmp_path / "sm.yaml").write_text(ONE)
    env = {"HOME": os.environ["HOME"]}
    assert find(None, env, tmp_path) == tmp_path / "sm.yaml"
    with pytest.raises(UsageError, match="is not used, as it lies in a work tree"):
        find(None, env | named, tmp_path)
    within = {"GIT_WORK_TREE": str(tmp_path / "deeper")}
    assert find(None, env | within, tmp_path) == tmp_path / "sm.yaml"


def test_a_permit_is_for_one_place_and_the_last_twenty_contents(clone: Path) -> None:
    path = clone / "sm.yaml"
    for number in range(allowed.KEPT + 1):
        allowed.allow(path, b"%d" % number)
    assert not allowed.is_allowed(path, b"0")
    assert all(allowed.is_allowed(path, b"%d" % n) for n in range(1, allowed.KEPT + 1))
    assert not allowed.is_allowed(clone / "deep" / "sm.yaml", b"1")


def test_allow_asks_which_of_two_was_read(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "allow"]) == 2
    assert "no sm.yaml, sm.yml or sm.toml here" in capsys.readouterr().err
    (clone / "sm.yaml").write_text(ONE)
    (clone / "sm.toml").write_text(ONE_TOML)
    assert run(["config", "allow"]) == 2
    assert "'sm.yaml' and 'sm.toml' here: name the file" in capsys.readouterr().err
    assert run(["config", "allow", "sm.toml"]) == 0
    assert names(clone) == ["harb"]
    assert find_left_out(None, {}, clone) == clone / "sm.yaml"
