"""What the agent of an issue may not decide about its own work. This process stands in for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sm.config.load import load
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.helpers import put_session
from tests.hub import Hub, make_hub


@pytest.fixture
def hub(tmp_path: Path, root: Root) -> Hub:
    """The agent calls that works on issue 1, which has pull request 3; issue 2 has number 4."""
    hub = make_hub(tmp_path, ci="true", review=True)
    forge = hub.open()
    for issue in (1, 2):
        forge.issues.add(f"Mend {issue}", "", ["backlog"], author="ada")
    for issue in (1, 2):
        hub.push(f"fix/{issue}", f"{issue}.txt", "mine\n")
        forge.pulls.open(f"fix/{issue}", "main", "Mend it", f"Closes #{issue}", author="sm")
    config = load(hub.config, os.environ, tmp_path)
    put_session(Project(config, config.projects[0]), 1)
    return hub


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("review 3 --approve", "pull request 3 is its own: only others may review it"),
        ("review harb#3 -m Fine", "pull request 3 is its own: only others may review it"),
        ("pr close 3", "pull request 3 is its own: only others may close it"),
        ("ci rerun 3", "pull request 3 is its own: only others may run its CI again"),
        ("ci rerun harb 1", "issue 1 is its own: only others may run its CI again"),
        ("reply harb 1 yes", "issue 1 is its own: only others may answer its questions"),
        ("recover harb 1", "issue 1 is its own: only others may restart it"),
        ("issue edit 1 -b Less", "issue 1 is its own: only others may change it"),
        ("issue label 1 --add blocked", "issue 1 is its own: only others may label it"),
        ("issue close 1", "issue 1 is its own: only others may close it"),
        ("issue reopen 1", "issue 1 is its own: only others may open it again"),
    ],
)
def test_an_agent_does_not_pass_as_a_person_on_its_own_issue(
    hub: Hub, command: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sm.issues.by_hand.recover", None)  # it would end this process
    said = hub.sm(*command.split())
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr == f"sm: this is the session 'harb #1', and {sentence}\n"
    forge = hub.open()
    assert (forge.issues.read(1).body, forge.issues.read(1).state) == ("", "open")
    assert (forge.pulls.read(3).reviews, forge.pulls.read(3).state) == ((), "open")


@pytest.mark.parametrize(
    "command",
    [
        *("review 4 --approve", "pr close 4", "ci rerun 4", "issue edit 2 -b Less"),
        *("issue label 2 --add blocked", "issue close 2", "issue reopen 2", "issue add More"),
    ],
)
def test_an_agent_may_help_with_another_issue(hub: Hub, command: str) -> None:
    said = hub.sm(*command.split())
    assert (said.returncode, said.stderr.count("only others")) == (0, 0), said.stderr
