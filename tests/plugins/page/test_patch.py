"""What a branch changes: bounded, and harmless whatever an agent has committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.adapters.process import Beginning
from sm.plugins.page import patch
from sm.plugins.page.patch import LINES, WIDEST, make_patch, read_patch
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
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
    found = read_patch(find_here(session))
    assert found.left_out == "Only the first 1 MB of the changes were read."
    assert len(found.lines) == LINES
    assert max(len(line.text) for line in found.lines) < 6 * WIDEST
    assert any("Binary files /dev/null and b/binary differ" in line.text for line in found.lines)
    assert "10 files changed" in found.stat
    html = browser.get(f"/page/session/{session.name}/diff").text
    assert len(html) < 2_000_000
    assert "Only the first 1 MB" in html
    tags = {tag for tag, _ in Read(html).elements}
    assert tags <= {"pre", "span", "p", "code"}
    for sign in ("\x1b", "\u202e"):
        assert sign not in html


def test_git_that_takes_too_long_is_stopped(
    session: IssueSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(session, {"work.txt": b"done\n"})
    monkeypatch.setattr(patch, "GIT_S", 0.0)
    assert read_patch(find_here(session)).left_out.startswith("Git was stopped after 0 s")


def test_a_branch_that_runs_a_program_in_a_diff_runs_none(
    session: IssueSession, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    git(Path(session.worktree), "config", "diff.x.textconv", f"touch {ran}; cat")
    git(Path(session.worktree), "config", "diff.x.command", f"touch {ran}; true")
    commit(session, {".gitattributes": b"* diff=x\n", "work.txt": b"done\n"})
    assert any(line.text == "+done" for line in read_patch(find_here(session)).lines)
    assert not ran.exists()


def test_lines_end_where_git_ends_them() -> None:
    found = make_patch(Beginning("+a\u2028b\x0cc\r\n+d\n".encode(), is_whole=True), "")
    assert [line.kind for line in found.lines] == ["add", "add"]
    assert make_patch(Beginning(b"", is_whole=True), "").lines == ()
    more = make_patch(Beginning(b"+\n" * (LINES + 1_500), is_whole=True), "")
    assert more.left_out == "1,500 more lines are left out."
