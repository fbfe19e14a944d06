"""A client that ends as it starts, in all sessions: none of their issues has caused that."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest
import yaml

from sm.sessions import plan
from sm.sessions.history import StepVerb, fold
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import PUPPET, Stage
from tests.helpers import wait_for

BROKEN = "#!/bin/sh\necho 'Error: Cannot find module'\nexit 1\n"
WHOLE = f'#!/bin/sh\nexec {shlex.join([sys.executable, str(PUPPET)])} "$@"\n'


@pytest.fixture
def client(tmp_path: Path) -> Path:
    """The agent's program, which can be replaced."""
    path = tmp_path / "client"
    path.write_text(BROKEN)
    path.chmod(0o755)
    return path


@pytest.fixture
def stage(stage_of: MakeStage, client: Path) -> Stage:
    stage = stage_of(settings={"max_sessions": 3})
    config = yaml.safe_load(stage.config.read_text())
    config["agent"]["command"] = str(client)
    stage.config.write_text(yaml.safe_dump(config))
    return stage


def count_tries(stage: Stage, issue: int) -> int:
    receipts = plan.read_receipts(stage.session(issue).dir)
    return sum(one.verb in (StepVerb.START, StepVerb.RECOVER) for one in receipts)


def list_kinds(stage: Stage) -> list[str]:
    found: list[dict[str, str]] = json.loads(stage.sm("needs", "--json", check=False).stdout)
    return [one["kind"] for one in found]


def test_a_client_that_is_broken_everywhere_costs_no_issue_its_restarts(
    stage: Stage, client: Path
) -> None:
    issues = [stage.file_issue(), stage.file_issue()]
    stage.poll()
    wait_for(
        lambda: min(count_tries(stage, issue) for issue in issues) > 4,
        "more tries than there are restarts",
    )
    need = stage.find_need("machine")
    assert need["text"] == (
        "agents end as they start, in 2 sessions (“Error: Cannot find module”): "
        "nothing new is taken up"
    )
    assert list_kinds(stage) == ["machine"], "it is told once, and of no issue"
    late = stage.file_issue()
    stage.poll()
    assert sorted(session.issue for session in stage.sessions()) == issues
    for session in stage.sessions():
        assert fold(plan.read_receipts(session.dir)).recoveries < 2
    assert "tried again at" in stage.sm("status").stdout

    client.write_text(WHOLE)
    wait_for(lambda: len(stage.told()) >= len(issues), "both agents to have their prompts")
    wait_for(lambda: not list_kinds(stage), "the fault to be over")
    stage.poll()
    assert sorted(session.issue for session in stage.sessions()) == [*issues, late]


def test_a_client_that_is_removed_costs_the_only_issue_no_restart(
    stage: Stage, client: Path
) -> None:
    """As by an update of npm, which takes its program away for a while."""
    client.write_text(WHOLE)
    issue = stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    client.rename(client.with_name("aside"))
    pane = stage.project.tmux.pane(stage.session(issue).name)
    assert pane
    os.kill(pane.pid, signal.SIGKILL)
    wait_for(lambda: count_tries(stage, issue) > 4, "more tries than there are restarts")
    need = stage.find_need("machine")
    assert need["text"].startswith("agents end as they start, in 1 session (“")
    assert f"cannot start '{client}': no such program" in need["text"]
    assert list_kinds(stage) == ["machine"], "it is told once, and of no issue"
    assert fold(plan.read_receipts(stage.session(issue).dir)).recoveries < 2
    client.with_name("aside").rename(client)
    wait_for(lambda: "machine" not in list_kinds(stage), "the fault to be over")


def test_an_agent_that_ends_as_it_starts_alone_has_its_restarts_and_no_more(
    stage: Stage, client: Path
) -> None:
    client.write_text(WHOLE)
    works = stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    client.write_text(BROKEN)
    stage.file_issue()
    stage.poll()
    wait_for(lambda: stage.sessions() == [stage.session(works)], "the issue to be given up")
    assert "machine" not in list_kinds(stage)
