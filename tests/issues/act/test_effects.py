"""Steps that a forge refuses: closing an issue that it keeps open, and merging after others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.adapters.forge.model import BOT
from sm.config.load import load
from sm.issues.act.effects import EFFECTS, PointlessError
from sm.sessions.history import StepVerb
from sm.sessions.plan import PlannedStep
from sm.sessions.project import Project
from sm.store.paths import Root
from sm.views.step_words import NOT_DONE
from tests.forges.gitea import Gitea
from tests.forges.sides import RemoteSide, remote_side
from tests.helpers import put_session
from tests.hub import make_hub


@pytest.fixture(params=["forgejo", "gitea"])
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RemoteSide]:
    with remote_side(request.param, make_hub(tmp_path), tmp_path / "kept") as side:
        yield side


def test_an_issue_that_the_forge_keeps_open_is_told_to_people(
    root: Root, side: RemoteSide, tmp_path: Path
) -> None:
    """Gitea does so while something is open that the issue depends on; the session ends then."""
    assert root.path
    first, second = (side.state.add(title, "", "ada").number for title in ("first", "second"))
    assert isinstance(side.dialect, Gitea)
    side.dialect.waits_for[second] = [first]
    config = load(side.hub.config, os.environ, tmp_path)
    session = put_session(Project(config, side.project), second)
    close = EFFECTS[StepVerb.CLOSE_ISSUE]
    kept = close(session, PlannedStep(StepVerb.CLOSE_ISSUE), "plan-1")
    assert kept.startswith(NOT_DONE)
    assert "it still has open dependencies" in kept
    [comment] = side.open().issues.read_comments(second)
    assert comment.body.endswith("open dependencies. Its work is merged: close it by hand.")
    close(session, PlannedStep(StepVerb.CLOSE_ISSUE), "plan-1")
    assert len(side.open().issues.read_comments(second)) == 1, "said once"
    side.open().issues.close(first)
    assert close(session, PlannedStep(StepVerb.CLOSE_ISSUE), "plan-1") == ""


def test_a_merge_that_conflicts_by_now_is_given_up_so_that_the_agent_is_told(
    root: Root, tmp_path: Path
) -> None:
    assert root.path
    hub = make_hub(tmp_path)
    config = load(hub.config, os.environ, tmp_path)
    session = put_session(Project(config, config.projects[0]), 1)
    head = hub.push("fix/1", content="ours\n")
    pull = hub.open().pulls.open("fix/1", "main", "Mend it", author=BOT)
    hub.push("main", content="theirs\n")
    merge = EFFECTS[StepVerb.MERGE]
    with pytest.raises(PointlessError, match="'fix/1' conflicts with 'main'"):
        merge(session, PlannedStep(StepVerb.MERGE, text=head), "")
    assert hub.open().pulls.read(pull.number).conflicts
