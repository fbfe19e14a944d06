"""A start that comes too late: the forge has changed since it was last seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sm.adapters.forge.model import Issue, IssueState
from sm.config.forges import LocalSettings
from sm.config.schema import ProjectSettings
from sm.issues.start import SettledError, is_due, start
from sm.issues.work import claim
from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.helpers import git


@pytest.fixture
def stage(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[Stage]:
    assert root.path
    assert tmux_socket
    made = make_stage(tmp_path, auto=False)
    yield made
    made.end()


def close(stage: Stage, issue: Issue) -> None:
    stage.project.forge.issues.close(issue.number)


def block(stage: Stage, issue: Issue) -> None:
    stage.project.forge.issues.add_label(issue.number, "blocked")


def take_out(stage: Stage, issue: Issue) -> None:
    stage.project.forge.issues.remove_label(issue.number, "backlog")


@pytest.mark.parametrize("settle", [close, block, take_out])
def test_issue_that_was_settled_meanwhile_is_not_taken_up_again(
    stage: Stage, settle: Callable[[Stage, Issue], None]
) -> None:
    """A session that ended during a tick of dev-poll was started anew after its merge."""
    seen = stage.project.forge.issues.read(stage.file_issue())
    settle(stage, seen)
    with pytest.raises(SettledError, match="settled in the meantime"):
        start(stage.project, seen)
    assert stage.sessions() == []
    assert stage.project.tmux.panes() == {}
    assert "claims" not in git(stage.repository.bare, "for-each-ref")


@pytest.mark.parametrize(
    ("labels", "state", "ours", "due"),
    [
        ({"backlog"}, IssueState.OPEN, False, True),
        (set(), IssueState.OPEN, False, False),
        (set(), IssueState.OPEN, True, True),
        ({"backlog", "blocked"}, IssueState.OPEN, True, False),
        ({"backlog"}, IssueState.CLOSED, True, False),
    ],
)
def test_an_issue_is_due_in_the_backlog_or_while_we_hold_its_claim(
    tmp_path: Path, labels: set[str], state: IssueState, ours: bool, due: bool
) -> None:
    settings = ProjectSettings(name="harb", repo=tmp_path, forge=LocalSettings(path=tmp_path))
    issue = Issue(7, "Mend it", state, "ada", 1000.0, tuple(labels))
    assert is_due(settings, issue, ours=ours) is due


def test_start_that_was_cut_short_is_finished_whatever_the_labels(stage: Stage) -> None:
    """So that the matrix gets to end the session, and nothing of it is left."""
    seen = stage.project.forge.issues.read(stage.file_issue())
    claim.claim(stage.project.git, stage.project.settings, seen.number, stage.project.root)
    take_out(stage, seen)
    assert start(stage.project, seen).issue == seen.number


def test_a_remote_that_refuses_new_branches_is_told_at_once(stage: Stage) -> None:
    """Only the table of sm status, sm doctor and the tick said so: sm needs had nothing."""
    hook = stage.repository.bare / "hooks" / "pre-receive"
    hook.write_text(
        "#!/bin/sh\nwhile read old new ref; do case $old$ref in 0000*refs/heads/fix/*) "
        "echo 'GH013: Repository rule violations found' >&2; exit 1;; esac; done\n"
    )
    hook.chmod(0o755)
    issue = stage.file_issue()
    assert stage.poll(check=False).returncode == 1
    need = stage.find_need("refused")
    said = "It is tried in vain (remote 'origin' refuses the push: GH013: Repository rule "
    assert need["text"].startswith(said)
    assert (need["issue"], need["command"]) == (issue, "sm doctor")
    assert said in stage.sm("status").stdout.splitlines()[0]
    stage.poll(check=False)
    assert stage.find_need("refused")["key"] == need["key"], "the next tick made it another need"
    hook.unlink()
    stage.poll()
    assert json.loads(stage.sm("needs", "--json").stdout) == []


def test_no_agent_begins_before_the_setup_of_its_worktree_has_passed(
    tmp_path: Path, root: Root, tmux_socket: str
) -> None:
    """The person hears its last lines, from the tick and from sm status."""
    assert root.path
    assert tmux_socket
    settings: dict[str, object] = {"worktree": {"setup": "echo no such package; exit 3"}}
    stage = make_stage(tmp_path, auto=False, settings=settings)
    issue = stage.file_issue()
    done = stage.poll(check=False)
    assert done.returncode == 1
    said = "worktree.setup failed (3): no such package: see '"
    assert said in done.stdout
    assert said in stage.sm("status").stdout
    assert stage.project.tmux.panes() == {}
    assert stage.session(issue).dir.setup_log.exists()
