"""The step that closes an issue whose work is merged, where the forge keeps it open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.config.load import load
from sm.issues.act.effects import EFFECTS
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
