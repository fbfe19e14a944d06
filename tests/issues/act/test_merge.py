"""The step that merges, when others have come before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sm.adapters.forge.model import BOT
from sm.config.load import load
from sm.issues.act.effects import EFFECTS, PointlessError
from sm.sessions.history import StepVerb
from sm.sessions.plan import PlannedStep
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.helpers import put_session
from tests.hub import make_hub


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
