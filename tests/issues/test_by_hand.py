"""Sessions that a person starts, restarts or ends: what becomes of the issue is said as it is."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.issues.work import claim
from sm.store.paths import Root
from tests.e2e.stage import REPOSITORY, Stage, make_stage
from tests.helpers import git, wait_for


@pytest.fixture
def stage(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[Stage]:
    assert root.path
    assert tmux_socket
    made = make_stage(tmp_path, auto=False)
    yield made
    made.end()


def start(stage: Stage, issue: int) -> subprocess.CompletedProcess[str]:
    script = str(REPOSITORY / "bin" / "agent-session")
    return stage.run("bash", script, "start", "harb", str(issue), check=False)


def test_an_open_issue_is_started_whatever_its_labels(stage: Stage) -> None:
    issue = stage.project.forge.issues.add("Do it now", author="ada").number
    done = start(stage, issue)
    assert (done.returncode, done.stderr) == (0, "")
    worktree = stage.session(issue).worktree
    assert done.stdout == f"dev-harb-{issue} is at work in {worktree}\n"
    wait_for(lambda: stage.told(), "the first prompt")
    assert start(stage, issue).returncode == 0  # it is there: left as it is
    assert len(stage.told()) == 1
    rows = [line.split() for line in stage.sm("status").stdout.splitlines()]
    assert str(worktree) in [row[-1] for row in rows if row]


def test_a_blocked_issue_is_not_recovered_and_the_command_that_unblocks_it_does(
    stage: Stage,
) -> None:
    forge = stage.project.forge
    issue = forge.issues.add("Stuck", labels=("blocked",), author="ada").number
    refused = stage.sm("recover", f"harb#{issue}", check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    said, _, command = refused.stderr.partition(": sm issue label ")
    assert f"issue #{issue} is labelled 'blocked'" in said.replace("sm: ", "")
    stage.sm("issue", "label", *command.split())
    assert forge.issues.read(issue).labels == ("backlog",)
    assert stage.sm("recover", f"harb#{issue}").returncode == 0
    killed = stage.sm("kill", f"harb#{issue}")
    assert f"sm issue label harb#{issue} --remove blocked --add backlog" in killed.stdout
    told = forge.issues.read(issue).comments[-1].body
    assert told.startswith(f"Session ended: sm kill, which has blocked issue #{issue}.")


def test_what_must_not_be_started_is_refused(stage: Stage, tmp_path: Path) -> None:
    forge = stage.project.forge
    closed = forge.issues.add("Over", author="ada").number
    forge.issues.close(closed)
    blocked = forge.issues.add("Stuck", labels=("blocked",), author="ada").number
    taken = forge.issues.add("Theirs", labels=("backlog",), author="ada").number
    claim.claim(stage.project.git, stage.project.settings, taken, Root(tmp_path / "elsewhere"))
    for issue, code, said in (
        (closed, 2, f"issue #{closed} is closed: nothing to start"),
        (blocked, 2, f"issue #{blocked} is labelled 'blocked': to have it worked on, "),
        (blocked, 2, f"sm issue label harb#{blocked} --remove blocked --add backlog"),
        (99, 2, "there is no issue 99"),
        (taken, 4, f"#{taken} is worked on elsewhere (host: "),
        (taken, 4, f"take it over with sm recover harb {taken}"),
    ):
        done = start(stage, issue)
        assert (done.returncode, done.stdout) == (code, "")
        assert said in done.stderr
    assert stage.sessions() == []
    assert stage.project.tmux.panes() == {}


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
