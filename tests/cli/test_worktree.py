from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from sm.__main__ import run
from sm.adapters.forge.local import forge
from sm.adapters.forge.model import IssueState
from sm.issues.look.snapshot import last_snapshot
from sm.issues.work import kept_worktrees, worktree
from sm.issues.work.claim import claim
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.helpers import (
    Repository,
    an_issue,
    git,
    open_project,
    put_session,
    put_snapshot,
    sm_yaml,
)


@pytest.fixture
def project(
    tmp_path: Path, root: Root, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> Project:
    assert root.path == tmp_path / "state"
    forge.create(tmp_path / "forge", repository.bare)
    path = sm_yaml(tmp_path, repo=str(repository.clone))
    monkeypatch.setenv("SM_CONFIG", str(path))
    return open_project(path)


@pytest.fixture
def left(project: Project) -> Path:
    """The worktree of issue 7, whose session has ended."""
    claim(project.git, project.settings, 7, project.root)
    return worktree.ensure(project.git, project.settings, 7).path


CLOSED = structs.replace(an_issue(7), state=IssueState.CLOSED)


def commit(path: Path) -> str:
    (path / "work.txt").write_text("work\n")
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "work")
    return git(path, "rev-parse", "HEAD")


def said(capfd: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    capfd.readouterr()
    assert run(["worktree", *words]) == code
    out, err = capfd.readouterr()
    return err if code else out


def listed(capfd: pytest.CaptureFixture[str]) -> dict[int, dict[str, Any]]:
    return {row["issue"]: row for row in json.loads(said(capfd, "list", "--json"))}


def test_list_says_what_would_be_lost(
    project: Project, left: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    put_snapshot(project, an_issue(7, title="Mend it"))
    [row] = listed(capfd).values()
    assert (row["path"], row["title"], row["lost"]) == (str(left), "Mend it", [])
    assert "nothing" in said(capfd, "list")
    head = commit(left)
    (left / "notes.txt").write_text("not committed\n")
    files, commits = listed(capfd)[7]["lost"]
    assert files == "it has uncommitted work: 'notes.txt'"
    assert head[:12] in commits
    assert "'notes.txt'" in said(capfd, "list")


def test_list_names_the_session_that_works_in_one(
    project: Project, left: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    put_session(project, 7)
    assert listed(capfd)[7]["session"] == "dev-harb-7"
    assert str(left) in said(capfd, "list")
    refusal = said(capfd, "drop", "7", code=2)
    assert "a session works on harb#7" in refusal
    assert "sm kill harb#7" in refusal
    assert left.exists()


@pytest.mark.usefixtures("left")
def test_one_without_work_is_dropped(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    assert said(capfd, "drop", "harb", "7") == "dropped the worktree of harb#7\n"
    assert not project.settings.worktrees.exists()
    assert project.git.rev_parse("refs/heads/fix/7") is None
    assert "there is no worktree of harb#7" in said(capfd, "drop", "7", code=2)


def test_work_is_dropped_only_by_force_and_named_before(
    project: Project, left: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    head = commit(left)
    (left / "notes.txt").write_text("not committed\n")
    refusal = said(capfd, "drop", "7", code=1)
    assert "uncommitted work: 'notes.txt'" in refusal
    assert f"on no branch of 'origin': '{head[:12]}'" in refusal
    assert "sm worktree drop harb#7 --force" in refusal
    assert (left / "notes.txt").read_text() == "not committed\n"
    assert git(left, "rev-parse", "fix/7") == head
    dropped = said(capfd, "drop", "7", "--force")
    assert "lost with it: it has uncommitted work: 'notes.txt'" in dropped
    assert head[:12] in dropped
    assert not left.exists()
    assert project.git.rev_parse("refs/heads/fix/7") is None


def test_while_the_remote_is_away_only_force_drops(
    repository: Repository, left: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    repository.bare.rename(repository.bare.with_name("away.git"))
    said(capfd, "drop", "7", code=4)
    assert left.exists()
    assert "is not known" in said(capfd, "drop", "7", "--force")
    assert not left.exists()


def test_one_that_a_person_has_locked_is_dropped_by_no_force(
    project: Project, left: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    git(project.settings.repo, "worktree", "lock", "--reason", "mine", str(left))
    assert "it is locked ('mine')" in said(capfd, "drop", "7", "--force", code=1)
    assert "it is locked ('mine')" in said(capfd, "list")
    assert left.exists()


def test_work_of_a_closed_pull_request_whose_branch_is_gone_is_kept(
    project: Project, repository: Repository, left: Path
) -> None:
    commit(left)
    git(left, "push", "-q")
    pull = project.forge.pulls.open("fix/7", "main", "Mend it", author="sm")
    project.forge.pulls.close(pull.number)
    git(repository.bare, "update-ref", "-d", "refs/heads/fix/7")
    put_snapshot(project, CLOSED, project.forge.pulls.read(pull.number))
    seen = last_snapshot(project.directory)
    assert seen
    assert "it has commits that are on no branch" in str(kept_worktrees.remove(project, seen, 7))
    assert left.exists()
