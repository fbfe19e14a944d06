"""A person ends a session by a command: what becomes of its issue is said as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.helpers import git, wait_for


@pytest.fixture
def stage(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[Stage]:
    assert root.path
    assert tmux_socket
    made = make_stage(tmp_path, auto=False)
    yield made
    made.end()


def begin(stage: Stage) -> int:
    """An issue at which an agent is at work; a pause keeps the monitor from ending it first."""
    issue = stage.file_issue()
    stage.poll()
    wait_for(lambda: stage.told(session=f"dev-harb-{issue}"), "the first prompt")
    stage.sm("pause")
    return issue


@pytest.mark.parametrize("merged", [True, False])
def test_an_issue_that_is_over_is_not_labelled_blocked(stage: Stage, merged: bool) -> None:
    forge, issue = stage.project.forge, begin(stage)
    if merged:
        stage.push_work(issue)
        branch = stage.project.settings.branch(issue)
        pull = forge.pulls.open(branch, "main", "Work", author="ada")
        git(Path(stage.session(issue).worktree), "push", "-q", "origin", "HEAD:main")
        over = f"pull request {pull.name} is merged"
    else:
        forge.issues.close(issue)
        over = f"issue #{issue} is closed"
    killed = stage.sm("kill", f"harb#{issue}")
    assert killed.stdout.splitlines()[0] == f"ended dev-harb-{issue}; {over}"
    assert "worked on again" not in killed.stdout
    found = forge.issues.read(issue)
    assert (found.state, found.labels) == ("closed", ())
    assert stage.sessions() == []
