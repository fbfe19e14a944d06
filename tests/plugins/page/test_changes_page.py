"""What a branch changes: bounded, and harmless whatever an agent has committed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sm.plugins.page import changes_page as page
from sm.plugins.page.changes.shown import ChangeStore
from sm.plugins.page.changes_page import read_change
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.views.change import read_files
from tests.helpers import git, put_session
from tests.plugins.page.client import Browser, Read
from tests.plugins.page.offered import find_here

NAMES = (
    "<img src=x onerror=alert(1)>.txt",
    "\u202egnp.exe",
    "\x1b[31mred",
    "two\nlines",
    "'; rm -rf ~; '",
    "-rf",
    "n" * 200,
)


@pytest.fixture
def session(project: Project) -> IssueSession:
    """One whose worktree is a clone with a branch of its own."""
    session = put_session(project, 3)
    git(project.settings.repo, "worktree", "add", "-q", "-b", "fix/3", str(session.worktree))
    return session


def commit(session: IssueSession, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (Path(session.worktree) / name).write_bytes(content)
    git(Path(session.worktree), "add", "-A")
    git(Path(session.worktree), "commit", "-q", "-m", "work")


def test_what_is_large_binary_or_strangely_named_is_shown_within_bounds(
    session: IssueSession, browser: Browser
) -> None:
    huge = b"".join(b"%d\n" % number for number in range(300_000))
    commit(
        session,
        dict.fromkeys(NAMES, b"<script>alert(1)</script>\n")
        | {"binary": bytes(range(256)) * 100, "one-line": b"y" * 50_000, "z-huge": huge},
    )
    found = read_change(find_here(session))
    assert not found.is_whole
    change = ChangeStore().show(found)
    assert change.left_out == "Only the first 2 MB of the changes were read."
    assert len(change.files) == 9, "the last one is behind what was read"
    html = browser.get(f"/page/session/{session.name}/diff").text
    assert len(html) < 100_000
    assert "Only the first 2 MB" in html
    assert "not text" in html
    _check_harmless(html)
    for file in change.files:
        html = browser.get(f"/page/change/{change.id}/{file.index}").text
        assert len(html) < 2_000_000
        _check_harmless(html)


def _check_harmless(html: str) -> None:
    tags = {tag for tag, _ in Read(html).elements}
    assert not tags & {"script", "img", "style"}
    for sign in ("\x1b", "\u202e"):
        assert sign not in html


def test_a_file_is_asked_for_when_it_is_opened(session: IssueSession, browser: Browser) -> None:
    commit(session, {f"{name}.py": b"x = 1\n" * 300 for name in "ab"})
    html = browser.get(f"/page/session/{session.name}/diff").text
    [path] = re.findall(r'hx-get="(/page/change/[^"]+)"', html)
    assert html.count('<tr class="added">') == 300, "one is open, the other one is not"
    assert browser.get(path).text.count('<tr class="added">') == 300
    gone = browser.get("/page/change/0123/0").text
    assert "load the page again" in gone
    assert "load the page again" in browser.get(f"{path}9999").text


def test_git_that_takes_too_long_is_stopped(
    session: IssueSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(session, {"work.txt": b"done\n"})
    monkeypatch.setattr(page, "GIT_S", 0.0)
    change = ChangeStore().show(read_change(find_here(session)))
    assert change.left_out.startswith("Git was stopped before it was done")


def test_a_branch_that_runs_a_program_in_a_diff_runs_none(
    session: IssueSession, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    git(Path(session.worktree), "config", "diff.x.textconv", f"touch {ran}; cat")
    git(Path(session.worktree), "config", "diff.x.command", f"touch {ran}; true")
    commit(session, {".gitattributes": b"* diff=x\n", "work.txt": b"done\n"})
    assert b"\n+done\n" in read_change(find_here(session)).data
    assert not ran.exists()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.submodule", "log"),
        ("diff.ignoreSubmodules", "all"),
        ("diff.suppressBlankEmpty", "true"),
        ("color.ui", "always"),
        ("core.quotePath", "false"),
    ],
)
def test_a_persons_settings_change_no_patch(
    session: IssueSession, setting: str, value: str
) -> None:
    worktree = Path(session.worktree)
    (worktree / "a").mkdir()
    commit(session, {"a/ü.txt": b"one\n\nthree\n"})
    link = git(worktree, "rev-parse", "HEAD")
    git(worktree, "update-index", "--add", "--cacheinfo", f"160000,{link},b/module")
    git(worktree, "commit", "-q", "-m", "a module")
    usual = read_files(read_change(find_here(session)).data)
    git(worktree, "config", setting, value)
    files = read_files(read_change(find_here(session)).data)
    assert [file.hunks for file in files] == [file.hunks for file in usual]
    assert [file.path for file in files] == ["a/ü.txt", "b/module"]
    assert files[1].added == 1
