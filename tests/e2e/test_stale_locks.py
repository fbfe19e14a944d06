"""A git was killed long ago and has left its lock: `sm` goes on, and says what it has removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sm.adapters.git_call import GitLockedError
from sm.adapters.git_locks import OLD_S
from tests.adapters.test_git_locks import leave
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage, kill
from tests.helpers import git, wait_for

OF_CLONE = ("config.lock", "packed-refs.lock", "refs/heads/fix/1.lock")


@pytest.mark.parametrize("kind", OF_CLONE)
def test_tick_removes_the_lock_says_so_and_picks_the_issue_up(
    stage_of: MakeStage, kind: str
) -> None:
    stage = stage_of()
    lock = leave(stage.repository.clone / ".git" / kind)
    stage.file_issue()
    said = stage.poll().stdout
    assert f"removed '{lock}', which a killed git had left behind" in said
    assert "pick up #1" in said
    assert "cannot" not in said
    assert len(stage.sessions()) == 1
    assert str(lock) in stage.project.root.journal.read_text()


def test_lock_in_a_living_agents_worktree_is_removed_and_told_of_its_session(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    lock = leave(stage.project.git.at(stage.session(issue).worktree).git_dir() / "index.lock")
    assert f"removed '{lock}'" in stage.poll().stdout
    told = stage.sm("trace", "harb", str(issue)).stdout
    assert "removed a lock that a killed git had left behind" in told
    stage.push_work(issue)


def test_lock_on_the_forge_is_named_and_removed(stage_of: MakeStage) -> None:
    stage = stage_of(settings={"review": {"required": False}, "ci": {"command": ""}})
    issue = stage.file_issue()
    stage.poll()
    stage.push_work(issue)
    forge = stage.project.forge
    pull = forge.pulls.open("fix/1", "main", "work", author="ada")
    lock = leave(stage.repository.bare / "refs/heads/main.lock")
    with pytest.raises(GitLockedError, match=r"main\.lock' is locked"):
        forge.pulls.merge(pull.number, author="ada")
    assert f"removed '{lock}'" in stage.poll().stdout
    assert forge.pulls.merge(pull.number, author="ada").merged_as


def test_restart_that_a_lock_stops_counts_as_no_crash(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    # Settings of the branch are written anew at a restart, where they are not as they must be.
    git(stage.repository.clone, "config", "--unset", f"branch.fix/{issue}.remote")
    lock = leave(stage.repository.clone / ".git" / "config.lock", age_s=0)
    kill(stage.agent_pid(issue))
    wait_for(lambda: "config" in _problem(stage, issue), "the restart to be stopped", 60)
    _age(lock)
    wait_for(lambda: len(stage.told()) == 2, "the next agent's prompt", 120)
    assert not lock.exists()
    assert '"failed: ' not in stage.session(issue).dir.receipts.read_text()


def _problem(stage: Stage, issue: int) -> str:
    file = stage.session(issue).dir.problem
    return file.read_text() if file.exists() else ""


def _age(lock: Path) -> None:
    old = lock.stat().st_mtime - OLD_S - 1
    os.utime(lock, (old, old))
