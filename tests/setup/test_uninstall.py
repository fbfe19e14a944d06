"""Leaving: what sm has made goes, what a person would lose stays and is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.shell_root import find_shell_root
from sm.store.paths import Root
from tests.helpers import git
from tests.residents import settle


@pytest.fixture
def clone(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone that `sm init` has set up, with a hub of its own; its program is linked."""
    assert root.path
    path = tmp_path / "src" / "reef"
    path.mkdir(parents=True)
    git(path, "init", "-q")
    git(path, "commit", "-q", "--allow-empty", "-m", "first")
    links = tmp_path / "links"
    links.mkdir()
    (links / "sm").symlink_to(find_shell_root() / "bin" / "sm")
    monkeypatch.setenv("PATH", f"{links}:{os.environ['PATH']}")
    monkeypatch.chdir(path)
    assert run(["init", "--yes", "--agent", "cat"]) == 0
    assert run(["hooks", "install"]) == 0
    return path


def seen(folder: Path) -> list[str]:
    """All that is there but the state and caches, which every command makes where they are missing.

    Which programs of sm run on this machine, and what they have configured, is looked at, too.
    """
    found = (path.relative_to(folder) for path in folder.rglob("*"))
    made = ("state", ".cache")
    return sorted(str(path) for path in found if not set(made).intersection(path.parts[:2]))


def make_state(root: Root) -> Path:
    root.private.mkdir(mode=0o700, exist_ok=True)
    phase = root.phase("reef", 7)
    phase.touch(mode=0o600)
    return phase


def test_a_dry_run_changes_nothing(
    clone: Path, tmp_path: Path, root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    make_state(root)
    before = seen(tmp_path)
    assert run(["uninstall", "--dry-run"]) == 0
    assert seen(tmp_path) == before
    said = capsys.readouterr().out
    for what in ("remote 'origin'", "hooks in", "state: ", "configuration: ", "link: ", "file: "):
        assert f"to be removed: {what}" in said


def test_all_that_sm_has_made_goes_and_the_clone_stays(
    clone: Path, tmp_path: Path, root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    phase = make_state(root)
    beside = root.phase("reefs", 7)
    beside.touch()
    commit = git(clone, "rev-parse", "main")
    assert run(["uninstall", "--yes"]) == 0
    assert git(clone, "remote") == ""
    assert git(clone, "rev-parse", "main") == commit
    assert git(clone, "status", "--porcelain") == ""
    for gone in (clone.parent / "reef-hub", root.private, phase, tmp_path / "links" / "sm"):
        assert not os.path.lexists(gone)
    assert beside.exists()
    assert not list(Path(os.environ["HOME"], ".config", "sm").iterdir())
    assert run(["uninstall", "--yes"]) == 0
    assert "there is nothing to remove" in capsys.readouterr().out


def test_what_is_nowhere_else_is_kept_and_named(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub = clone.parent / "reef-hub"
    assert run(["issue", "add", "Not done"]) == 0
    tree = clone.parent / "reef-worktrees" / "reef-7"
    git(clone, "worktree", "add", "-q", "-b", "fix/7", str(tree))
    git(tree, "commit", "-q", "--allow-empty", "-m", "merged, and not pulled")
    git(tree, "push", "-q", "origin", "HEAD:main")
    (tree / "unsaved").touch()
    assert run(["uninstall", "--yes"]) == 0
    said = capsys.readouterr().out
    assert f"kept: worktree: {tree}: " in said
    assert "it has commits of main that no branch of yours has" in said
    assert (tree / "unsaved").exists()
    assert sorted(path.name for path in hub.iterdir()) == ["forge", "repo.git"]
    assert git(clone, "remote") == "origin"


def test_branches_of_issues_that_stay_in_the_clone_are_named(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for branch in ("fix/8", "fix/9", "fix/typo"):
        git(clone, "branch", branch)
    tree = clone.parent / "reef-worktrees" / "reef-7"
    git(clone, "worktree", "add", "-q", "-b", "fix/7", str(tree))
    assert run(["uninstall", "--dry-run"]) == 0
    assert f"kept: branches of {clone}: fix/8, fix/9: " in capsys.readouterr().out


def test_open_issues_are_kept(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["issue", "add", "Not done"]) == 0
    assert run(["uninstall", "--yes"]) == 0
    assert "reef-hub/forge: 1 in it are open" in capsys.readouterr().out
    assert not (clone.parent / "reef-hub" / "repo.git").exists()


def test_while_a_session_is_on_record_nothing_is_done(
    clone: Path, tmp_path: Path, root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    root.private.mkdir(mode=0o700, exist_ok=True)
    ann = settle(root, tmp_path, "s-000000aa")
    assert run(["uninstall", "--yes"]) == 1
    assert f"end them first: sm kill {ann.address}" in capsys.readouterr().err
    assert (clone.parent / "reef-hub").exists()


@pytest.mark.long_lived
def test_while_a_loop_a_server_or_a_watch_runs_nothing_is_done(
    clone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They made the state again, and people were told nothing of them."""
    loop = ["bash", str(find_shell_root() / "bin" / "dev-poll"), "--loop"]
    follow = [sys.executable, "-Im", "sm", "events", "--follow"]
    env = os.environ | {"SM_PYTHON": sys.executable}
    elsewhere = env | {"SM_STATE_ROOT": str(tmp_path / "elsewhere")}
    (tmp_path / "elsewhere").mkdir()
    begun = [
        subprocess.Popen(command, env=at, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command, at in ((loop, env), (follow, env), (follow, elsewhere))
    ]
    try:
        first, second, other = (one.pid for one in begun)
        assert run(["uninstall", "--yes"]) == 1
        said = capsys.readouterr().err
        assert f"dev-poll --loop (process {first}), sm events --follow (process {second})" in said
        assert str(other) not in said
        assert f"kill {first} {second}" in said
        assert (clone.parent / "reef-hub").exists()
    finally:
        for one in begun:
            one.kill()
            one.wait()


@pytest.mark.parametrize("said", ["n", ""])
def test_without_consent_nothing_is_changed(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """Enter alone used to remove all of it."""
    import io

    before = seen(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{said}\n"))
    assert run(["uninstall"]) == 1
    assert seen(tmp_path) == before


def test_what_plugins_have_left_goes_as_well(
    clone: Path, sealed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = sealed / ".claude.json"
    client.write_text('{"theme": "dark"}\n')
    assert run(["mcp", "install"]) == 0
    assert "mcpServers" in client.read_text()
    capsys.readouterr()
    assert run(["uninstall", "--yes"]) == 0
    assert f"removed: tools for threads in {client}\n" in capsys.readouterr().out
    assert '"sm"' not in client.read_text()
