"""Who is told the phase protocol again in a new context."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import structs

from sm.adapters.agent.claude import CLAUDE
from sm.config.load import load
from sm.context import act
from sm.issues.act.compose import launch_with
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.helpers import put_session, sm_yaml
from tests.residents import settle, target


def test_only_an_issues_agent_without_it_in_its_system_prompt_is_told_it_again(
    root: Root, tmp_path: Path
) -> None:
    config = load(sm_yaml(tmp_path), os.environ, tmp_path)
    project = Project(config, config.projects[0])
    session = put_session(project, 7)
    bare = structs.replace(CLAUDE, system_prompt=())
    told = act.repeat_protocol(target(session, bare))
    assert f"PHASE_FILE is {project.root.phase('harb', 7)}." in told
    assert told == launch_with(session, "").protocol
    assert act.repeat_protocol(target(session, CLAUDE)) == ""
    assert act.repeat_protocol(target(settle(root, tmp_path, "s-1"), bare)) == ""
